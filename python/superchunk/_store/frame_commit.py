"""The one state that a frame on the disk has in this process, and when it is committed.

A frame is a list of chunks whose committed state others can read. What handles of this
process change waits in memory until a commit, which writes index and trailer and then
switches to them in one step. How that looks is the business of the two layouts:
`contiguous_frame` and `sparse_frame` (a directory).

A commit costs bytes in proportion to the number of chunks. So a change is committed at once only if these bytes are
at most a twelfth of the chunk bytes written since the last commit. Otherwise the change waits. All commits together,
the closing one included, then stay below an eighth.

Source: docs/format/cframe.md, "Commits" and "Concurrency"; docs/format/integrity.md.
"""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from superchunk import _engine
from superchunk._format.frame_header import FIXED_LEN, FrameHeader, with_sizes
from superchunk._format.frame_index import CHUNK_MIN, ENTRY_LEN
from superchunk._format.integrity import FINGERPRINT_TYPE, header_mask, record_len
from superchunk._format.metalayers import read_metalayers, write_metalayers
from superchunk._format.trailer import Trailer
from superchunk._store import open_frames as registry
from superchunk._store.changes_and_undo import Mark, MutableChunkTable, PastTable, check_same_length
from superchunk._store.frame_loading import check_fingerprint, settings_of
from superchunk._store.locks import WriterLock
from superchunk._store.os_file import RetiredFiles, storage_error
from superchunk.exceptions import SuperchunkError

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Buffer

    from superchunk._engine import Box, Source
    from superchunk._store.changes_and_undo import Change
    from superchunk._store.frame_loading import Loaded, Proof
    from superchunk._store.open_frames import Key, Use
    from superchunk._store.os_file import FileBytes
    from superchunk._store.path_target import ReplaceRule
    from superchunk._store.store_interface import FrameSettings
    from superchunk.params import SyncLevel

__all__ = ["CommittedFrame", "empty_frame"]

_COMMIT_SHARE = 12


def empty_frame(
    settings: FrameSettings,
    chunksize: int,
    meta: Mapping[str, bytes],
    *,
    vlblocks: bool,
    seal: bool,
    sparse: bool = False,
) -> bytes:
    """Return a whole frame without chunks."""
    return _empty_frame(settings, chunksize, tuple(meta.items()), vlblocks, seal, sparse)


@lru_cache(maxsize=16)
def _empty_frame(
    settings: FrameSettings,
    chunksize: int,
    meta: tuple[tuple[str, bytes], ...],
    vlblocks: bool,
    seal: bool,
    sparse: bool,
) -> bytes:
    block = write_metalayers(dict(meta))
    header_len = FIXED_LEN + len(block)
    trailer = _bare_trailer(seal)
    header = FrameHeader(
        header_len=header_len,
        frame_len=header_len + len(trailer) + (record_len(header_len) if seal else 0),
        nbytes=0,
        cbytes=0,
        chunksize=chunksize,
        has_vlmeta=False,
        varchunks=chunksize == 0,
        vlblocks=vlblocks,
        sparse=sparse,
        **settings._asdict(),
    )
    raw = header.to_bytes() + block
    if not seal:
        return raw + trailer
    mask = header_mask(header_len, read_metalayers(raw))
    return raw + _engine.proven_trailer(trailer, (raw, 0, 0, False), mask, None)


@lru_cache(maxsize=2)
def _bare_trailer(sealing: bool) -> bytes:
    """Return the trailer of a frame without vlmetalayers, without record and fingerprint."""
    return Trailer(fingerprint_type=FINGERPRINT_TYPE if sealing else 0).to_bytes()


class FrameMark(Mark):
    """What a frame on the disk was."""

    __slots__ = ()

    authors: frozenset[object]
    _written: int
    _raw_header: bytes
    _dirty: bool
    _index_changed: bool
    _stale_seals: bool

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks proved something then: nobody else had changed the frame."""
        return not self._stale_seals


class _Held:
    """Is there as long as a block runs, however it is left."""

    __slots__ = ("__weakref__",)


class CommittedFrame(MutableChunkTable):
    """A frame on the disk, shared by the handles of this process.

    Handles that take part in what waits, the `authors`, see it; all others see the committed state.
    """

    sparse: bool = False
    file: FileBytes
    """The file of the frame, or of its index."""
    start: int
    """The frame's first byte in it."""
    _room = 0
    """Bytes of chunks between header and index."""
    _watched_name: tuple[int, str] | None = None
    """The open directory and the name in it that the file must have; None: any."""
    _retired: RetiredFiles | None = None
    """Files that others have taken the place of."""
    _writer: WriterLock | None = None
    """The lock that a writer takes, once it was asked for."""
    _takes_lock_turns = False
    """Whether it lets those in that take turns by a lock file."""
    unpublished: str | None = None
    """The name that a new frame gets with its first commit, if it waits for that."""
    fresh = False
    """Whether nothing of the frame can be on the disk yet, so that nothing can be lost."""
    _new_name = True
    """Whether its name may not be on the disk: for all that is known, whoever gave it did not wait for that."""
    rule: ReplaceRule
    """What a new frame may take that name of."""

    def __init__(self, path: str, file: FileBytes, loaded: Loaded, start: int = 0) -> None:
        """Take over `file`, whose frame at byte `start` says `loaded`."""
        self.path = path
        self.file = file
        self.start = start
        self.key: Key | None = None
        """What the registry knows it by."""
        self.uses: list[ref[Use]] = []
        """Those who use it."""
        self.authors: frozenset[object] = frozenset()
        """Who has made the changes that wait for their commit."""
        self._read_by: ref[_Held] | None = None
        self._committed_mark: Mark | None = None
        """The committed state, noted down when the first change after it begins."""
        self._committed_past: PastTable | None = None
        self.successor: CommittedFrame | None = None
        """The state that handles go on with, once another frame has this one's name."""
        self.sync_level: SyncLevel = "explicit"
        self.sealing = True
        self._last_trailer: tuple[object, bool, bytes] = (None, False, b"")
        self._last_fixed: tuple[object, bytes] = (None, b"")
        self.lock = threading.RLock()
        self.changes = []
        self._specials = {}
        self.version = self.epoch = self._edits = 0
        self._urgent = False
        self._adopt(loaded)
        registry.forked.add(self)

    @property
    def users(self) -> int:
        """How many handles use it."""
        return sum(use() is not None for use in self.uses)

    @property
    def writers(self) -> int:
        """How many of them may change it."""
        return sum(use.writable for each in self.uses if (use := each()) is not None)

    # What a layout adds, besides `place` and `put`.

    @abstractmethod
    def refresh(self, *, force: bool = False, whole: bool = False) -> bool:
        """Follow another process's commit; return whether there was one.

        With `force` there was one, even if nothing shows it. With `whole`, header, index and trailer are compared,
        whatever the file's times say, and nothing that was learnt from chunks counts any more.

        Raises
        ------
        StorageError
            There was one although changes of this process waited; they are lost.
        FormatError
            The frame is damaged now.

        """

    def _watch_anew(self, probe: bytes) -> None:
        """Watch the same state, whose first bytes are `probe`, without what was read and what other threads hold."""
        self._watch = _engine.Watch(self.file.read_fd, self.start, probe, self._watched_name, self._proven)

    def _is_same(self, loaded: Loaded) -> bool:
        """Return whether a frame says what the committed state does; forget what was learnt from chunks meanwhile."""
        if loaded.raw_header != self._committed_header or loaded.proof != self._proof:
            return False
        self._watch_anew(loaded.probe)  # blocks that were kept go
        if not (self._proof.stored or self._dirty or self.busy):
            self._live = self._sizes = self._starts = None
        return True

    def starts(self) -> array[int]:
        """Return the n + 1 prefix sums of the chunks' sizes, bytes; do not change it."""
        self._doubt_sizes()
        return super().starts()

    def _variable_sizes(self) -> array[int]:
        self._doubt_sizes()
        return super()._variable_sizes()

    def _doubt_sizes(self) -> None:
        """Forget sizes that chunks tell, if C-Blosc2 may have written other chunks where they are."""
        if self.fixed_size <= 0 and not (self._proof.stored or self._dirty) and self._watch.doubted():
            self._sizes = self._starts = None

    def is_changed(self) -> bool:
        """Return whether somebody else seems to have changed the frame.

        Raises
        ------
        StorageError
            The file cannot be read.

        """
        try:
            return self._watch.changed()
        except OSError as error:
            raise storage_error(error, self.path) from error

    def read_small(
        self,
        start: int,  # noqa: ARG002
        stop: int,  # noqa: ARG002
        itemsize: int,  # noqa: ARG002
        out: Buffer | None,  # noqa: ARG002
        box: Box | None,  # noqa: ARG002
    ) -> bytes | None:
        """Return None: only of one file a small part is read in one call."""
        return None

    @abstractmethod
    def enable_writing(self, *, takes_lock_turns: bool = False) -> None:
        """Make sure that the frame can be changed, by this process alone.

        Those that are `takes_lock_turns` let each other in, but nobody else.
        """

    @abstractmethod
    def disable_writing(self) -> None:
        """Let other processes write; the last handle for writing is gone."""

    @property
    def writing(self) -> bool:
        """Whether this process has the frame for writing."""
        writer = self._writer
        return writer is not None and writer.held

    def _lock_writing(self, fd: int) -> None:
        """Take the lock on the open file or directory `fd`."""
        if self._writer is None:
            self._writer = WriterLock()
        self._writer.acquire(fd, self.path, shared=self._takes_lock_turns)

    def _unlock_writing(self) -> None:
        if self._writer is not None:
            self._writer.release()

    def _retire(self, file: FileBytes) -> None:
        """Keep a file that another one has taken the place of, for calls that still read it."""
        if self._retired is None:
            self._retired = RetiredFiles()
        self._retired.add(file)

    @abstractmethod
    def compact(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Give dead bytes back to the disk."""

    @abstractmethod
    def discard(self) -> None:
        """Remove a frame that has not got its name yet."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what the system gave."""

    @abstractmethod
    def _write(self, index_chunk: bytes | None, *, sync: bool) -> None:
        """Make the present state the committed one."""

    @abstractmethod
    def _sync(self) -> None:
        """Wait for the disk, names included."""

    @abstractmethod
    def _publish(self, name: str) -> None:
        """Give a new frame its name, in place of what had it."""

    @property
    @abstractmethod
    def dead_bytes(self) -> int:
        """Bytes of the committed frame and of what waits that nothing refers to."""

    @property
    def _still(self) -> bool:
        """Whether somebody reads this state, who may hold the lock for long."""
        held = self._read_by
        return held is not None and held() is not None

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep the present state as it is while the block reads."""
        with self.lock:
            held = _Held()
            if not self._still:
                self.replacing = False  # an interrupt may have left it
                self._read_by = ref(held)
            yield
            del held

    @contextmanager
    def _moved(self) -> Iterator[None]:
        """Let threads that read without the lock know that file and index do not go together in the block."""
        self.replacing = True
        self.version += 1
        try:
            yield
        finally:
            self.version += 1
            self.replacing = False

    # The committed state.

    def _adopt(self, loaded: Loaded) -> None:
        """Become the committed state that `loaded` describes."""
        self._committed_mark = None
        self.epoch += 1
        header = loaded.header
        self.settings = settings_of(header)
        self.fixed_size = header.chunksize
        self.nbytes = header.nbytes
        self.index, self._index_is_shared = loaded.index, True
        self.vlmeta = loaded.trailer.vlmeta
        self.frame_len = header.frame_len
        self._vlblocks = None if header.nbytes else header.vlblocks
        self._raw_header = raw = loaded.raw_header
        self._layers = loaded.layers
        self.meta = {name: raw[at : at + n] for name, (at, n) in loaded.layers.items()} if loaded.layers else {}
        self._index_len, self._index_of = loaded.index_len, loaded.nchunks
        self._trailer_len = loaded.trailer_len
        self._live = None if header.nbytes else (0, 0)
        self._sizes = self._starts = None
        self._unproven = loaded if loaded.sealed is None else None
        # Seals may be stale if somebody else has changed the frame since they were made.
        self._stale_seals = loaded.sealed is False and header.nbytes > 0
        self._specials.clear()
        self.version += 1
        self._remember(loaded.nchunks, loaded.probe, loaded.proof)

    def _remember(self, nchunks: int, probe: bytes, proof: Proof) -> None:
        """Take the present state, with an index without a journal, for the committed one, and watch it."""
        self._committed_mark = self._committed_past = None
        self.epoch += 1
        self._committed_header = self._raw_header
        self._committed_nchunks = nchunks
        self._index_changed = self._dirty = False
        self._written = 0
        self.authors = frozenset()
        end = self.start + self.frame_len
        digest, stored = self._proof = proof
        if stored:
            ranges = [(end - len(digest), len(digest))]
        else:
            index_at = self.start + len(self._raw_header) + self._room
            ranges = [(index_at, self._index_len), (end - self._trailer_len, self._trailer_len)]
        self._proven = (digest, ranges, not stored)
        # Last: until then, whoever looks comes here again.
        self._watch = _engine.Watch(self.file.read_fd, self.start, probe, self._watched_name, self._proven)

    @property
    def header_bytes(self) -> bytes:
        """The committed header."""
        return self._committed_header

    @property
    def sealed(self) -> bool:
        """Whether seals behind chunks prove something: nobody else changed the frame."""
        return not self._stale_seals

    def prove(self) -> None:
        """Compare the frame with its fingerprint, if that was put off.

        Raises
        ------
        FormatError
            They differ.
        StorageError
            The file cannot be read.

        """
        if self._unproven is not None:
            check_fingerprint(self._unproven)
            self._unproven = None

    @property
    def busy(self) -> bool:
        """Whether a change is under way.

        Whoever sees this, holding the lock, is inside of it: a signal handler, or a handle that the garbage
        collector closes.
        """
        return bool(self.changes)

    @property
    def waiting(self) -> bool:
        """Whether changes wait for their commit, or are under way."""
        return self._dirty or not all(change.idle for change in self.changes)

    # Changing.

    def undo(self, mark: Mark) -> None:
        """Come back to the state of `mark`, if nothing was committed or loaded since."""
        self._settle()
        if mark.epoch != self.epoch:
            return
        noted = cast("FrameMark", mark)
        self._undo(noted)
        self._written, self._raw_header = noted._written, noted._raw_header
        self._dirty, self._index_changed, self.authors = noted._dirty, noted._index_changed, noted.authors
        super().undo(mark)

    def _undo(self, mark: Any) -> None:
        """Come back to the layout's part of `mark`."""

    def heal(self) -> None:
        """Find out whether a commit that was interrupted is there, and take back what is not."""
        self._settle()
        super().heal()

    @abstractmethod
    def _settle(self) -> None:
        """If a switch was interrupted, find out whether it was made, and go on from there."""

    def finish(self, change: Change) -> None:
        """End a change; what then waits for its commit is its owner's."""
        mark = change.mark
        if self.version != mark.version and change.owner not in self.authors:
            self.authors |= {change.owner}
        if self.changes[0] is not change:
            return
        if self._edits != mark._edits:
            self._done(at_once=self._urgent or change.at_once or change.transaction, sync=change.transaction)
            self._urgent = False
        if not self._dirty:
            self.authors = frozenset()

    def noted(self, mark: Mark) -> None:
        """Keep the mark of the committed state, from which a change begins."""
        if self._committed_mark is None and not self._dirty:
            self._committed_mark = mark

    def committed(self) -> CommittedFrame | PastTable | None:
        """Return the committed state, for who must not see what waits; None if it changes in this moment."""
        mark, past = self._committed_mark, self._committed_past
        if mark is None:
            changes = self.changes[:]
            return self if changes and changes[0].mark.epoch != self.epoch and not self._dirty else None
        if past is not None and past.mark is mark:
            return past
        index = self.index.as_of(mark.journal)
        if index is None or self._committed_mark is not mark:
            return None
        past = self._committed_past = PastTable(mark, index)
        return past

    def follow(self) -> None:
        """Before a change: come to terms with what another process did, and have an index of one's own."""
        if self._retired is not None:
            self._retired.tidy()
        if not self._dirty and not self.changes:
            self.refresh()
            if self._index_is_shared:
                self.index, self._index_is_shared = self.index.copy(), False

    def assign_settings(self, settings: FrameSettings) -> None:
        """Record `settings` with the next commit."""
        if settings != self.settings:
            self.settings = settings
            self._specials.clear()
            self._dirty = True
            self.version += 1

    def set_meta(self, name: str, content: bytes, *, at_once: bool = True) -> None:
        """Change a fixed metalayer, at once on the disk or with the chunks."""
        check_same_length(self.meta.get(name), name, content)
        at, length = self._layers[name]
        raw = self._raw_header
        self._raw_header = raw[:at] + bytes(content) + raw[at + length :]
        self.meta = {**self.meta, name: bytes(content)}
        self._edited(at_once=at_once)

    # Committing.

    def _done(self, *, at_once: bool, sync: bool) -> None:
        """Commit, `at_once` or unless waiting is cheaper by far, and wait for the disk to `sync`."""
        self._dirty = True
        nchunks = self.index.length
        if at_once or not nchunks:
            self.commit(sync=sync)
        else:
            most = self._written // _COMMIT_SHARE - self._trailer_len - FIXED_LEN
            known = self._index_of
            if (self._index_len * nchunks // known if known else CHUNK_MIN + ENTRY_LEN * nchunks) <= most:
                chunk = self.index.to_chunk()
                self._index_len, self._index_of = len(chunk), nchunks
                if len(chunk) <= most:
                    self.commit(chunk)
        if self._dirty:
            self.epoch += 1  # it waits, and is done all the same
            self.index.tidy()

    def commit(self, index_chunk: bytes | None = None, *, sync: bool = False) -> None:
        """Write what waits, and switch to it.

        Parameters
        ----------
        index_chunk
            The index as a chunk, if it is at hand.
        sync
            Wait for the disk before the switch and after it, unless the level is "never".

        Raises
        ------
        StorageError
            Writing failed, and the committed state is as it was. Or only the wait for the disk behind the switch
            failed, and the new state is the committed one. Or another process changed the frame meanwhile.

        """
        level = self.sync_level
        self._settle()
        if self._dirty:
            self.refresh()
            self._write(index_chunk, sync=level == "commit" or (sync and level != "never"))
            self._committed()
        elif sync and level != "never":
            self._sync()
        if self.unpublished is not None:
            self._publish(self.unpublished)
            if (sync and level != "never") or level == "commit":
                self._sync()

    def _committed(self) -> None:
        """Tidy up behind a commit."""

    def give_up(self, why: SuperchunkError) -> None:
        """Come back to the committed state, and warn of what is lost, because `why`; without a name, be no more."""
        self._drop_changes(why)
        if self.unpublished is not None:
            self.discard()

    def _drop_changes(self, why: SuperchunkError) -> None:
        with self.lock:
            if not self._dirty:
                return
            now, kept = len(self.index), self._committed_nchunks
            self._dirty = False
            self.changes.clear()
            self.authors = frozenset()
            with suppress(SuperchunkError):
                self.refresh(force=True)
        warnings.warn(
            f"{self.path}: changes that waited for their commit are lost ({now} chunks, of which the file has"
            f" {kept}): {why}",
            RuntimeWarning,
            stacklevel=2,
        )

    def commit_if_idle(self) -> None:
        """Commit what waits, unless somebody is changing the frame right now."""
        if self._dirty and self.unpublished is None and self.lock.acquire(blocking=False):
            try:
                self.heal()
                if not self.busy:
                    self.commit()
            finally:
                self.lock.release()

    def _index_chunk(self, known: bytes | None) -> bytes:
        """Return the index chunk, and remember how long it is."""
        chunk = self.index.to_chunk() if known is None else known
        self._index_len, self._index_of = len(chunk), self.index.length
        return chunk

    def _plain_trailer(self) -> bytes:
        """Return the trailer without record and fingerprint, kept while it is the same."""
        if not self.vlmeta:
            return _bare_trailer(self.sealing)
        held, sealing, raw = self._last_trailer
        if held is not self.vlmeta or sealing != self.sealing:
            raw = Trailer(vlmeta=self.vlmeta, fingerprint_type=FINGERPRINT_TYPE if self.sealing else 0).to_bytes()
            self._last_trailer = (self.vlmeta, self.sealing, raw)
        return raw

    def _next_trailer_len(self) -> int:
        """Return the bytes of the trailer that comes next."""
        return len(self._plain_trailer()) + self._record_len()

    def _next_trailer(
        self, header: bytes, index_chunk: Source | None, *, last_synced: int, sealed_from: int, pending: bool = False
    ) -> bytes:
        """Return the trailer of a frame with such a header and index chunk."""
        plain = self._plain_trailer()
        if not self.sealing:
            return plain
        mask = header_mask(len(self._raw_header), self._layers)
        return _engine.proven_trailer(plain, (header, last_synced, sealed_from, pending), mask, index_chunk)

    def _record_len(self) -> int:
        return record_len(len(self._raw_header)) if self.sealing else 0

    def _header(self, *, frame_len: int, cbytes: int) -> bytes:
        """Return the whole header of a commit of the present state; what stays of its fixed part is kept."""
        raw, has_vlmeta = self._raw_header, bool(self.vlmeta)
        fields = (len(raw), self.settings, self.fixed_size, self.vlblocks, has_vlmeta)
        known, fixed = self._last_fixed
        if known != fields:
            header = FrameHeader(
                header_len=len(raw),
                frame_len=frame_len,
                nbytes=self.nbytes,
                cbytes=cbytes,
                chunksize=self.fixed_size,
                has_vlmeta=has_vlmeta,
                varchunks=self.fixed_size == 0,
                vlblocks=self.vlblocks,
                sparse=self.sparse,
                **self.settings._asdict(),
            )
            fixed = header.to_bytes()
            self._last_fixed = (fields, fixed)
        return with_sizes(fixed, frame_len=frame_len, nbytes=self.nbytes, cbytes=cbytes) + raw[FIXED_LEN:]

    def after_fork(self, *, torn: bool) -> None:
        """Start anew in a child process; what waits here is the parent's to commit.

        With `torn` a thread of the parent was in the middle of something, and the frame is loaded anew.
        """
        del torn  # of that the layouts take care
        self.lock = threading.RLock()
        self._writer = WriterLock(inherited=True)
        self._watch_anew(self._watch.probe)  # a thread may have been in its cache
        self.changes.clear()
        self.authors = frozenset()
        self._read_by = self.switch = None
        self.replacing = False
