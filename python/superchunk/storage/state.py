"""The one state of a contiguous frame in a file, and how it is committed.

::

    header | chunks  dead  chunks | index chunk | trailer      committed
    header | chunks  dead  chunks | dead          dead | new chunks            waiting
    header | chunks  dead  chunks | dead          dead | new chunks | index chunk | trailer

New chunks go behind the frame's end, where nobody sees them; a commit writes index chunk
and trailer behind them, and then switches to the new state by one write of the header's
fixed part. What the old header points to is never overwritten, except in a frame without
data, whose trailer has to stand right behind the header: there both are written at once.

A commit costs bytes in proportion to the number of chunks. So a change is committed at
once only while that is at most a tenth of the chunk bytes written since the last commit;
else it waits. All commits together, the closing one included, then stay below an eighth.

Source: docs/format/cframe.md, "Commits" and "Frames without data".
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from superchunk.exceptions import ReadOnlyError, StorageError
from superchunk.frame.header import FIXED_LEN, MAGIC, FrameHeader
from superchunk.frame.index import ENTRY_LEN
from superchunk.frame.metalayers import write_metalayers
from superchunk.frame.trailer import Trailer
from superchunk.storage.changes import check_same_length
from superchunk.storage.file import replace_file
from superchunk.storage.followed import FollowedFrame
from superchunk.storage.loading import PROBE_LEN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from superchunk.storage.base import FrameSettings
    from superchunk.storage.changes import Mark

__all__ = ["FrameState"]

_COMMIT_SHARE = 10
_CHUNK_HEADER_LEN = 32


class FrameState(FollowedFrame):
    """A frame that can be changed; shared by the handles of this process."""

    _fields: tuple[object, dict[str, Any]] = (None, {})

    @staticmethod
    def empty_frame(settings: FrameSettings, chunksize: int, meta: Mapping[str, bytes], *, vlblocks: bool) -> bytes:
        """Return a whole frame without chunks."""
        block = write_metalayers(meta)
        trailer = Trailer().to_bytes()
        header_len = FIXED_LEN + len(block)
        header = FrameHeader(
            header_len=header_len,
            frame_len=header_len + len(trailer),
            nbytes=0,
            cbytes=0,
            chunksize=chunksize,
            has_vlmeta=False,
            varchunks=chunksize == 0,
            vlblocks=vlblocks,
            **asdict(settings),
        )
        return header.to_bytes() + block + trailer

    def enable_writing(self) -> None:
        """Make sure that the frame can be changed.

        Raises
        ------
        ReadOnlyError
            Something else follows the frame in its file.
        StorageError
            The system refuses.

        """
        with self.lock:
            self.file.enable_writing()
            if self._behind <= 0:
                return
            what = f"{self._behind} bytes follow"
            end = self.start + self.frame_len
            if self.file.pread(len(MAGIC), end) == MAGIC:
                what = "another frame follows"
            elif not self.start:
                return
            raise ReadOnlyError(
                f"{self.file.path}: the frame at byte {self.start} ends at byte {end} and {what};"
                " only the last thing in a file can be changed"
            )

    def begin(self) -> Mark:
        """Return what `undo` needs to come back to this state."""
        return (
            *super().begin(),
            self._loads,
            self._room,
            self._end,
            self._written,
            self._raw_header,
            self._dirty,
            self._index_changed,
        )

    def undo(self, mark: Mark) -> None:
        """Come back to the state of `mark`; what was written behind it is stray."""
        (loads, room, end, written, raw_header, dirty, index_changed) = mark[-7:]
        if loads != self._loads:
            return  # another process's state was loaded meanwhile, and it is what counts
        super().undo(mark)
        self._room, self._end = cast("int", room), cast("int", end)
        self._written, self._raw_header = cast("int", written), cast("bytes", raw_header)
        self._dirty, self._index_changed = cast("bool", dirty), cast("bool", index_changed)
        self._meta = None
        self._stray = True

    def follow(self) -> None:
        """Before a change: come to terms with what another process did."""
        if not self._dirty and not self._depth:
            self.refresh()

    def put(self, chunks: Sequence[bytes]) -> Sequence[int]:
        """Write `chunks` behind the frame's end."""
        at = self._end
        if self._stray:
            self._trim(at)
        self.file.pwrite(chunks, self.start + at)
        header_len = len(self._raw_header)
        entries = []
        for chunk in chunks:
            entries.append(at - header_len)
            at += len(chunk)
        self._written += at - self._end
        self._end = at
        self._room = at - header_len
        return entries

    def assign_settings(self, settings: FrameSettings) -> None:
        """Record `settings` with the next commit."""
        if settings != self.settings:
            self.settings = settings
            self._specials.clear()
            self._dirty = True
            self.version += 1

    @property
    def busy(self) -> bool:
        """Whether a batch is under way."""
        return self._depth > 0

    @property
    def waiting(self) -> bool:
        """Whether changes wait for their commit."""
        return self._dirty

    def _changed(self) -> None:
        super()._changed()
        self._dirty = self._index_changed = True

    def set_meta(self, name: str, content: bytes) -> None:
        """Change a fixed metalayer, at once on the disk."""
        mark = self.begin()
        try:
            check_same_length(self.meta.get(name), name, content)
            at, length = self._layers[name]
            raw = self._raw_header
            self._raw_header = raw[:at] + bytes(content) + raw[at + length :]
            self._meta = None
            self.version += 1
            self._finish(at_once=True)
        except BaseException:
            self.undo(mark)
            raise

    def done(self, *, at_once: bool) -> None:
        """Commit, unless waiting is cheaper by far."""
        self._dirty = True
        nchunks = len(self.index)
        if at_once or not nchunks:
            self.commit()
        elif self._overhead(self._expected_index_len()) <= self._written:
            chunk = self.index.to_chunk()
            self._index_len, self._index_of = len(chunk), nchunks
            if self._overhead(len(chunk)) <= self._written:
                self.commit(chunk)
        self.index.forget()

    def commit(self, index_chunk: bytes | None = None, *, sync: bool = False) -> None:
        """Write what waits, and switch to it.

        Parameters
        ----------
        index_chunk
            The index as a chunk, if it is at hand.
        sync
            Wait for the disk before the switch and after it.

        Raises
        ------
        StorageError
            Writing failed, and the committed state is as it was; or another process
            changed the frame meanwhile.

        """
        if self._dirty:
            self.refresh()
            if not len(self.index):
                self._commit_empty()
            else:
                self._commit_chunks(index_chunk, sync=sync)
            self._remember()
            self._loads += 1  # what follows may fail, but the change is done
            if self._stray:
                self._tidy()
        if self.unpublished is not None:
            self._publish(self.unpublished)
        if sync:
            self.file.sync()

    def commit_if_idle(self) -> None:
        """Commit what waits, unless somebody is changing the frame right now."""
        if not self._dirty or self.unpublished is not None:
            return
        if self.lock.acquire(blocking=False):
            try:
                if not self._depth:
                    self.commit()
            finally:
                self.lock.release()

    def after_fork(self) -> None:
        """Start anew in a child process; what waits here is the parent's to commit."""
        self.lock = threading.RLock()
        self.unpublished = None
        if self._dirty or self._depth:
            self._depth = 0
            self._reload()

    def _overhead(self, index_len: int) -> int:
        """Return how many chunk bytes make a commit with such an index cheap."""
        return _COMMIT_SHARE * (index_len + self._trailer_len + FIXED_LEN)

    def _expected_index_len(self) -> int:
        nchunks = len(self.index)
        if self._index_of:
            return self._index_len * nchunks // self._index_of
        return _CHUNK_HEADER_LEN + ENTRY_LEN * nchunks

    def _header(self, *, frame_len: int, cbytes: int) -> bytes:
        header = FrameHeader(
            header_len=len(self._raw_header),
            frame_len=frame_len,
            nbytes=self.nbytes,
            cbytes=cbytes,
            chunksize=self.fixed_size,
            has_vlmeta=bool(self.vlmeta),
            varchunks=self.fixed_size == 0,
            vlblocks=self.vlblocks,
            **self._settings_fields(),
        )
        return header.to_bytes()

    def _settings_fields(self) -> dict[str, Any]:
        """Return the settings as keywords, kept while they are the same."""
        held, fields = self._fields
        if held is not self.settings:
            held, fields = self._fields = self.settings, asdict(self.settings)
        return fields

    def _commit_empty(self) -> None:
        """Write header and trailer, which must stand together, in one go."""
        trailer = Trailer(vlmeta=self.vlmeta).to_bytes()
        frame_len = len(self._raw_header) + len(trailer)
        raw = self._header(frame_len=frame_len, cbytes=0) + self._raw_header[FIXED_LEN:]
        before = self.file.pread(frame_len, self.start)
        self._switch(raw + trailer, before)
        self._raw_header = raw
        self._probe = (raw + trailer)[:PROBE_LEN]
        self._room = self._index_len = self._index_of = 0
        self._trailer_len = len(trailer)
        self._end = self.frame_len = frame_len
        self._stray = True

    def _commit_chunks(self, index_chunk: bytes | None, *, sync: bool) -> None:
        """Write index chunk and trailer, as far as they changed, and then the header."""
        header_len = len(self._raw_header)
        end, frame_len, room = self._end, self._end, self._room
        new_index = self._index_changed
        trailer = b""
        if new_index or self.vlmeta is not self._committed_vlmeta:
            # A new trailer alone leaves the old one as slack behind the index chunk.
            trailer = Trailer(vlmeta=self.vlmeta).to_bytes()
            chunk = b""
            if new_index:
                chunk = self.index.to_chunk() if index_chunk is None else index_chunk
                room = end - header_len
            if self._stray:
                self._trim(end)
            self.file.pwrite([chunk, trailer], self.start + end)
            if sync:
                self.file.sync()
            frame_len = end + len(chunk) + len(trailer)
            if new_index:
                self._index_len, self._index_of = len(chunk), len(self.index)
        fixed = self._header(frame_len=frame_len, cbytes=room)
        raw = fixed + self._raw_header[FIXED_LEN:]
        old = self._committed_header
        if old[FIXED_LEN:] == raw[FIXED_LEN:]:
            self._switch(fixed, old[:FIXED_LEN])
        else:
            self._switch(raw, old)
        self._raw_header = raw
        self._probe = raw[:PROBE_LEN]
        self._room, self._end, self.frame_len = room, frame_len, frame_len
        if trailer:
            self._trailer_len = len(trailer)

    def _switch(self, head: bytes, before: bytes) -> None:
        """Write `head` at the frame's start, the commit point; `before` stood there."""
        try:
            self.file.pwrite(head, self.start)
        except StorageError:
            self._restore(before)
            raise

    def _publish(self, name: str) -> None:
        """Give the file its name, in place of what had it."""
        replace_file(self.file.path, name)
        self.file.path = name
        self.unpublished = None

    def _restore(self, before: bytes) -> None:
        """Put back what a failed write of the header may have changed in part."""
        try:
            self.file.pwrite(before, self.start)
        except StorageError:
            return

    def _tidy(self) -> None:
        """Cut the file at the frame's end; if that fails, the next change tries again."""
        try:
            self._trim(self.frame_len)
        except StorageError:
            return

    def _trim(self, end: int) -> None:
        """Cut off what a writer left behind byte `end` of the frame."""
        if self.file.size() > self.start + end:
            self.file.truncate(self.start + end)
        self._stray = False
