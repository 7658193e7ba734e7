"""The name of a frame: how a new frame takes it from an old one, and where the frame is if that was cut short.

::

    .NAME.XXXXXXXXXXXX.new      beside it: a frame that will get the name
    .NAME.XXXXXXXXXXXX.old      beside it: what had the name until then
    .NAME.XXXXXXXXXXXX.kept     beside it: the same, a directory that snapshots reference
    .NAME.b2taking              beside it: the name is being taken, by the frame of the 12 digits in this file;
                                or that was long ago, and something may be left of what had it

Looking for a missing name costs the same in a full directory as in an empty one. The directory is searched only where
the last of these names exists. Knows nothing about what is in a frame.

Source: docs/format/sparse.md, "Replacing a frame".
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from superchunk._store.chunk_folder import INDEX_NAME, is_folder, joined, list_folder, pin_name, remove_frame_folder
from superchunk._store.locks import WriterLock, leads_to
from superchunk._store.os_file import FileBytes, exchange_files, place_file, remove_file, replace_file, sync_folder
from superchunk._store.snapshot_locks import is_share_locked
from superchunk.exceptions import ExistingFileError, LockedError, MissingFileError, StorageError

if TYPE_CHECKING:
    from superchunk._store.path_target import ReplaceRule

__all__ = ["Mark", "aside_of", "find_name", "give_up", "move_aside", "prefix_beside", "settle_name", "take_name"]

_LONGEST: Final = 200
"""Bytes of a name that the names beside it repeat: a system takes 255 in all."""
_DIGEST: Final = 8
"""Bytes of the hash that stands for the rest of a longer name."""
_DIGITS: Final = 12
_MOST_TRIES: Final = 100
"""Writers that get in between, each with another mark."""


def prefix_beside(path: str) -> str:
    """Return how the names begin that belong to the frame `path`, in its directory, and to no other."""
    name = os.path.basename(path)
    whole = os.fsencode(name)
    if len(whole) > _LONGEST:
        import hashlib  # few names are as long

        digest = hashlib.blake2b(whole, digest_size=_DIGEST).hexdigest()
        name = f"{whole[: _LONGEST - len(digest) - 1].decode(errors='ignore')}-{digest}"
    return f".{name}."


def aside_of(path: str) -> str:
    """Return a name in the directory of `path` for a frame that will replace it."""
    return _beside(path, f"{os.urandom(_DIGITS // 2).hex()}.new")


def _beside(path: str, ending: str) -> str:
    return joined(os.path.dirname(path), prefix_beside(path) + ending)


def _sync_names(path: str) -> None:
    sync_folder(os.path.dirname(path), display_path=path)


class Mark:
    """The file that says that a name is being taken, and by which digits; it is locked as long as the writer lives.

    Nobody moves what has the name, in more than one step, without it. While the mark exists, possibly only the frame
    with the digits is on the disk. The directory is therefore synced before that frame is removed. The mark goes last,
    when nothing else is left that had the name.
    """

    __slots__ = ("_file", "_lock", "first")

    def __init__(self, file: FileBytes) -> None:
        """Take over an open file, and lock it.

        Raises
        ------
        LockedError
            A living writer holds it.
        StorageError
            The system refuses.

        """
        self._file = file
        self._lock = WriterLock()
        self.first = True
        """Whether there was none before it."""
        try:
            self._lock.acquire(file.read_fd, file.display_path)
        except BaseException:
            file.close()
            raise

    @staticmethod
    def path_of(name: str) -> str:
        """Return the path of the mark for `name`."""
        return _beside(name, "b2taking")

    @classmethod
    def made(cls, name: str, digits: str) -> Mark:
        """Make it, down to the disk, in place of what a dead writer left.

        Raises
        ------
        LockedError
            A living writer has one.
        StorageError
            The system refuses; there is no mark.

        """
        path, first = cls.path_of(name), True
        for _ in range(_MOST_TRIES):
            try:
                mark = cls(FileBytes.create(path, display_path=name))
            except StorageError as error:
                if error.errno != errno.EEXIST:
                    raise
                settle_name(name)
                first = False
                continue
            try:
                if not mark.exists:
                    mark.close()
                    continue  # taken for a dead writer's, in the moment before it was locked
                mark._file.pwrite(digits.encode(), 0)
                mark._file.sync()
                _sync_names(name)
            except BaseException:
                mark.remove()
                mark.close()
                raise
            mark.first = first
            return mark
        raise LockedError(errno.EAGAIN, "others are replacing it all the time", name)

    @classmethod
    def left(cls, name: str) -> Mark | None:
        """Return the mark that a dead writer left for `name`, None if there is none.

        Raises
        ------
        LockedError
            The writer is alive.
        StorageError
            The system refuses.

        """
        try:
            file = FileBytes.open(cls.path_of(name), follow=False)
        except FileNotFoundError:
            return None
        file.display_path = name
        mark = cls(file)
        if mark.exists:
            return mark
        mark.close()
        return None

    @property
    def exists(self) -> bool:
        """Whether it is still the mark, now that it is locked."""
        return leads_to(self._file.path, self._file.read_fd)

    def sync(self) -> None:
        """Wait until the names around it are on the disk.

        Raises
        ------
        StorageError
            The system refuses.

        """
        _sync_names(self._file.path)

    def remove(self) -> None:
        """Remove it; if that fails it stays, and costs a look at each search in vain."""
        with suppress(StorageError):
            remove_file(self._file.path)

    def close(self) -> None:
        """Let go of it."""
        self._lock.release()
        self._file.close()


def settle_name(path: str) -> None:
    """Remove the mark that a killed writer left beside `path`, when the names are on the disk.

    What has lost the name is not found any more after that.

    Raises
    ------
    LockedError
        The writer is alive.
    StorageError
        The system refuses.

    """
    mark = Mark.left(path)
    if mark is None:
        return
    try:
        if os.path.lexists(path):  # else the other one is all that there is
            mark.sync()
            mark.remove()
    finally:
        mark.close()


def take_name(new: str, name: str, rule: ReplaceRule) -> bool:
    """Give a new frame, a file or a directory, the name of what may be there; return whether something may be left.

    What was there is removed; a directory with snapshots is kept under another name. It is checked before it loses the
    name and, under the name that it has then, afterwards: what appeared in between gets its name back.

    One file replaces another in one step, and so does a directory where the system can exchange two names. Elsewhere
    what has the name gets another one first, by which `find_name` finds it after a crash.

    Parameters
    ----------
    new
        The frame, complete; it is called ``.NAME.XXXXXXXXXXXX.new``.
    name
        The path it gets, in the same directory.
    rule
        What may lose the name.

    Raises
    ------
    ArgumentError
        What has the name may not be replaced.
    LockedError
        Another writer is replacing it just now.
    StorageError
        Nothing may be there and something is, or the system refuses; `name` is what it was.

    """
    for _ in range(_MOST_TRIES):
        if rule.identity is None and not os.path.lexists(name):
            try:
                place_file(new, name, display_path=rule.path)
            except ExistingFileError:
                continue
            return False
        try:
            rule.check(name)
            if is_folder(name) or is_folder(new):
                return _take_by_mark(new, name, rule)
            return _take_from_file(new, name, rule)
        except MissingFileError:
            if os.path.lexists(name) or not os.path.lexists(new):
                raise
    raise LockedError(errno.EAGAIN, "others are replacing it all the time", rule.path)


def _take_from_file(new: str, name: str, rule: ReplaceRule) -> bool:
    """Let the file `new` replace the file `name`; return whether the old one may be left."""
    if not _exchanged(new, name, rule):
        replace_file(new, name, display_path=rule.path)
        return False
    try:
        remove_file(new)
    except StorageError:
        return True  # the new frame has its name
    return False


def _exchanged(new: str, name: str, rule: ReplaceRule) -> bool:
    """Exchange the names if the system can, and check what has the name `new` then; return whether it can."""
    ours = os.lstat(new)
    try:
        if not exchange_files(new, name, display_path=rule.path):
            return False
        rule.check(new)
    except BaseException:
        if os.path.lexists(new) and os.path.samestat(os.lstat(name), ours):
            exchange_files(new, name, display_path=rule.path)
        raise
    return True


def _take_by_mark(new: str, name: str, rule: ReplaceRule) -> bool:
    """Let `new` take the name of `name`, one of them a directory; return whether the old one may be left."""
    stem = new[: -len(".new")]
    old = f"{stem}.old"
    mark = Mark.made(name, stem[-_DIGITS:])
    try:
        try:
            _swap(new, name, old, rule)
        except BaseException:
            if os.path.lexists(name):
                with suppress(StorageError):
                    mark.sync()
                    mark.remove()
            raise
        try:
            mark.sync()
            gone = give_up(old)
        except StorageError:
            return False  # the new frame has its name; the mark stays, for what is left of the old one
        if gone and mark.first:
            mark.remove()
            return False
        return True
    finally:
        mark.close()


def _swap(new: str, name: str, old: str, rule: ReplaceRule) -> None:
    """Call `name` `old`, and `new` `name`; if that fails all is as it was."""
    if _exchanged(new, name, rule):
        with suppress(StorageError):
            place_file(new, old)
        return
    place_file(name, old, display_path=rule.path)
    try:
        rule.check(old)
        place_file(new, name, display_path=rule.path)
    except BaseException:
        place_file(old, name, display_path=rule.path)
        raise


def move_aside(path: str, rule: ReplaceRule) -> None:
    """Remove what has the name `path`, after taking it the name and checking it once more.

    Raises
    ------
    ArgumentError
        It may not go; it has its name again.
    StorageError
        The system refuses.

    """
    aside = _beside(path, f"{os.urandom(_DIGITS // 2).hex()}.old")
    place_file(path, aside, display_path=path)
    try:
        rule.check(aside)
    except BaseException:
        place_file(aside, path)
        raise
    if is_folder(aside):
        remove_frame_folder(aside)
    else:
        remove_file(aside)


def give_up(old: str) -> bool:
    """Remove a frame that has lost its name to another one; keep a directory that snapshots reference.

    Return whether it is gone.

    Raises
    ------
    StorageError
        The system refuses.

    """
    if not is_folder(old):
        remove_file(old)
        return True
    try:
        index = FileBytes.open(joined(old, INDEX_NAME), follow=False)
    except (FileNotFoundError, StorageError):
        pass  # nobody can have begun to reference it
    else:
        try:
            if is_share_locked(index):
                replace_file(index.path, joined(old, pin_name()))
            else:
                remove_file(index.path)
        finally:
            index.close()
    if not any(_is_referenced(joined(old, name)) for name in list_folder(old).pinned):
        remove_frame_folder(old)
        return True
    if old.endswith(".old"):
        replace_file(old, old[: -len(".old")] + ".kept")
    return False


def _is_referenced(path: str) -> bool:
    try:
        file = FileBytes.open(path, follow=False)
    except FileNotFoundError:
        return False
    try:
        return is_share_locked(file)
    finally:
        file.close()


def find_name(path: str, *, mend: bool = False) -> str | None:
    """Return where the frame of the name `path` is, None if nowhere.

    That is `path`, unless a writer was killed while it replaced the frame: then the old
    one has another name.

    Parameters
    ----------
    path
        The name.
    mend
        Give it back, if the writer is dead.

    Raises
    ------
    StorageError
        The system refuses.

    """
    if os.path.lexists(path):
        return path
    old = _loser_of(path)
    if old is None or os.path.lexists(path):
        return path if os.path.lexists(path) else None  # it may have got its name in the meantime
    return _mended(path, old) if mend else old


def _loser_of(path: str) -> str | None:
    """Return the frame that lost the name `path`, by the mark beside it."""
    mark = Mark.path_of(path)
    if not os.path.lexists(mark):
        return None
    try:
        file = FileBytes.open(mark, follow=False)
    except (FileNotFoundError, StorageError):
        return None
    try:
        digits = file.pread(_DIGITS, 0).decode("ascii", "replace")
    finally:
        file.close()
    if not re.fullmatch(r"[0-9a-f]{12}", digits):
        return None  # it had not begun
    old = _beside(path, f"{digits}.old")
    # Without its index file a directory was replaced, and then its heir removed.
    return old if os.path.lexists(joined(old, INDEX_NAME) if is_folder(old) else old) else None


def _mended(path: str, old: str) -> str:
    """Give the frame `old` its name `path` back, unless a living writer is at it; return where it is."""
    try:
        mark = Mark.left(path)
    except StorageError:
        return old
    if mark is None:
        return path if os.path.lexists(path) else old
    try:
        if not os.path.lexists(path):
            with suppress(ExistingFileError):
                place_file(old, path)
        with suppress(StorageError):
            mark.sync()
            mark.remove()
    finally:
        mark.close()
    return path
