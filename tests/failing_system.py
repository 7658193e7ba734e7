"""Stories in which the system refuses, each told by a process of its own.

::

    python failing_system.py STORY FOLDER file|folder   exit status 0: it went as promised; 77: it cannot be told here

They fill a disk, take away permissions or descriptors, or remove files that are in use, which
nobody should do to the process that runs all the tests. `Other` is one more process, which sees
only what is on the disk. What they show is said in test_system_failures.py.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import random
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from other_process import Other

import superchunk
import superchunk._api.opening  # not when there are no descriptors to load it with
from superchunk import SChunk
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from superchunk import CParamsDict

CANNOT = 77
"""Exit status: the system does not let us tell this story."""
NOBODY = 65534
CONTIGUOUS = sys.argv[3:] != ["folder"]
"""What the story is about: a file, or a directory."""
CHUNK = 4000
NOISE = random.Random(11).randbytes(60 * CHUNK)


def noise(number: int) -> bytes:
    """Return the content of a chunk that does not compress."""
    return NOISE[number * CHUNK :][:CHUNK]


def new(path: str, nchunks: int = 3, *, contiguous: bool | None = None) -> SChunk:
    """Return a writable SChunk with `nchunks` of noise, committed; of the kind that the story is about."""
    kind = CONTIGUOUS if contiguous is None else contiguous
    cparams: CParamsDict = {"typesize": 4, "nthreads": 1}
    s = SChunk(chunksize=CHUNK, urlpath=path, mode="w", contiguous=kind, cparams=cparams)
    for n in range(nchunks):
        s.append_data(noise(n))
    s.vlmeta["nchunks"] = nchunks
    s.flush()
    return s


class Elsewhere:
    """What another process finds at a path."""

    def __init__(self) -> None:
        self._other = Other("import superchunk")

    def content(self, path: str) -> bytes:
        """Return what is committed there."""
        text: str = self._other(f"superchunk.open({path!r}, verify='read')[:].hex()")
        return bytes.fromhex(text)

    def can_write(self, path: str) -> bool:
        """Return whether the other process gets the frame for writing."""
        self._other(
            f"try:\n    superchunk.open({path!r}, 'a').close(); got = True\n"
            "except superchunk.exceptions.LockedError:\n    got = False\n"
        )
        return bool(self._other("got"))


@contextlib.contextmanager
def refused(path: str, number: int | None, *words: str) -> Iterator[None]:
    """Expect a StorageError about `path`, with `number` for a reason."""
    with pytest.raises(StorageError) as caught:
        yield
    text = str(caught.value)
    assert path in text, text
    assert caught.value.errno == number, text
    assert ".new" not in text, text
    assert all(word in text for word in words), text


# A full disk.


class Disk(Protocol):
    """One that can be filled to its last byte, and given room again."""

    number: int
    """Of the error when it is full."""

    def fill(self, path: str) -> None:
        """Leave no room for the file `path` to grow."""

    def free(self) -> None:
        """Give room."""


class SmallDisk:
    """A disk of its own, in memory."""

    number = errno.ENOSPC

    def __init__(self, folder: Path) -> None:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", folder], check=False).returncode:  # noqa: S607
            sys.exit(CANNOT)
        self._plug = folder / "plug"

    def fill(self, path: str) -> None:
        """Fill it with another file."""
        del path
        with self._plug.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def free(self) -> None:
        """Remove that file."""
        self._plug.unlink()


class SmallFiles:
    """A limit on the size of files, for where no disk can be made."""

    number = errno.EFBIG

    def __init__(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self._most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def fill(self, path: str) -> None:
        """Let no file get larger than this one."""
        size = Path(path).stat().st_size if CONTIGUOUS else 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._most))

    def free(self) -> None:
        """Lift the limit."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._most, self._most))


def full(folder: Path, disk: Disk) -> None:
    """Write until the disk is full; make room; go on."""
    path, elsewhere = str(folder / "data.b2frame"), Elsewhere()
    s = new(path)
    _every_change_is_refused(s, path, disk, elsewhere)
    _nothing_that_waits_is_lost(s, path, disk, elsewhere)
    _the_end_of_with_can_be_repeated(path, disk, elsewhere)
    _what_is_dropped_is_told(path, disk, elsewhere)


def _every_change_is_refused(s: SChunk, path: str, disk: Disk, elsewhere: Elsewhere) -> None:
    def in_a_transaction() -> None:
        with s.transaction():
            s.vlmeta["more"] = 1
            s.append_data(noise(5))

    changes: list[Callable[[], object]] = [
        lambda: s.append_data(noise(3)),
        lambda: s.update_data(0, noise(4), copy=False),
        lambda: s.insert_data(1, noise(4), copy=False),
        lambda: s.vlmeta.__setitem__("text", noise(6)),
        in_a_transaction,
        lambda: s.__setitem__(slice(0, 3 * CHUNK // 4), NOISE[-3 * CHUNK :]),
    ]
    before = s[:]
    disk.fill(path)
    for change in changes:
        for _ in range(2):
            with refused(path, disk.number):
                change()
            assert s[:] == before
            assert s.vlmeta.getall() == {"nchunks": 3}
            assert elsewhere.content(path) == before
    if disk.number == errno.ENOSPC:
        if CONTIGUOUS:
            with refused(path, disk.number):
                s.compact()
        else:
            s.compact()  # writes nothing if nothing waits
        assert sorted(os.listdir(Path(path).parent)) == ["data.b2frame", "plug"]  # noqa: PTH208
        with refused(str(Path(path).with_name("other")), disk.number):
            new(str(Path(path).with_name("other")))
        assert not any(name.endswith(".new") for name in os.listdir(Path(path).parent))  # noqa: PTH208
    disk.free()
    for change in changes:
        change()
    s.flush()
    assert elsewhere.content(path) == s[:] != before


def _nothing_that_waits_is_lost(s: SChunk, path: str, disk: Disk, elsewhere: Elsewhere) -> None:
    before = s[:]
    disk.fill(path)
    s.append_data(bytes(CHUNK))  # takes no room until it is committed
    for again in (s.flush, s.close, s.close):
        with refused(path, disk.number):
            again()
        assert s[:] == before + bytes(CHUNK)
        assert elsewhere.content(path) == before
        assert not elsewhere.can_write(path)
    assert superchunk.schunk_from_cframe(s.to_cframe())[:] == s[:]
    s.append_data(bytes(CHUNK))
    disk.free()
    s.flush()
    assert elsewhere.content(path) == s[:] == before + bytes(2 * CHUNK)
    s.close()
    assert elsewhere.can_write(path)


def _the_end_of_with_can_be_repeated(path: str, disk: Disk, elsewhere: Elsewhere) -> None:
    before = elsewhere.content(path)
    with refused(path, disk.number), superchunk.open(path, mode="a") as s:
        disk.fill(path)
        s.append_data(bytes(CHUNK))
    assert elsewhere.content(path) == before
    disk.free()
    s.close()
    s.close()
    assert elsewhere.content(path) == before + bytes(CHUNK)


def _what_is_dropped_is_told(path: str, disk: Disk, elsewhere: Elsewhere) -> None:
    before = elsewhere.content(path)
    s = superchunk.open(path, mode="a")
    nchunks = s.nchunks
    reader = superchunk.open(path)
    disk.fill(path)
    s.append_data(bytes(CHUNK))
    assert s[:] == before + bytes(CHUNK)
    assert reader[:] == before
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del s
        gc.collect()
    text = " ".join(str(one.message) for one in told if one.category is RuntimeWarning)
    assert f"{path}: " in text, told
    assert f"{nchunks + 1} chunks, of which the file has {nchunks}" in text, text
    assert reader[:] == before
    assert elsewhere.content(path) == before
    assert elsewhere.can_write(path)
    disk.free()


def full_disk(folder: Path) -> None:
    """Fill a disk of half a megabyte."""
    full(folder, SmallDisk(folder))


def full_file(folder: Path) -> None:
    """Let files not grow."""
    full(folder, SmallFiles())


def full_at_exit(folder: Path) -> None:
    """Leave with changes that cannot be committed."""
    path, disk = str(folder / "data.b2frame"), SmallFiles()
    s = new(path)
    disk.fill(path)
    s.append_data(bytes(CHUNK))
    global _kept  # noqa: PLW0603 - as a program's own name would be
    _kept = s


_kept: SChunk | None = None


# Permissions.


def _become_nobody(folder: Path) -> None:
    """Give up the right to do anything, if this process has it."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        except OSError:
            sys.exit(CANNOT)
    if not os.access(folder, os.W_OK | os.X_OK):
        sys.exit(CANNOT)


def read_only_folder(folder: Path) -> None:
    """Allow no new file in the folder."""
    elsewhere, path = Elsewhere(), str(folder / "data.b2frame")
    _become_nobody(folder)
    s = new(path)
    s.update_data(0, noise(1), copy=False)
    s.flush()
    folder.chmod(0o555)
    if not CONTIGUOUS:
        Path(path).chmod(0o555)
    try:
        before = s[:]
        other = str(folder / "other")
        for name in (other, path):
            with refused(name, errno.EACCES, "Permission denied"):
                new(name)
        if CONTIGUOUS:
            with refused(path, errno.EACCES, "Permission denied"):
                s.compact()
        else:
            s.compact()  # does nothing if nothing waits

        def empty() -> None:
            with s.transaction():
                while s.nchunks:
                    s.delete_chunk(0)

        with refused(path, errno.EACCES, "Permission denied"):
            empty()
        assert s[:] == before
        if CONTIGUOUS:
            s.append_data(noise(3))  # needs no new file
            s.flush()
            assert elsewhere.content(path) == before + noise(3)
        else:
            with refused(path, errno.EACCES, "Permission denied"):
                s.append_data(noise(3))
            assert elsewhere.content(path) == s[:] == before
        assert os.listdir(folder) == ["data.b2frame"]  # noqa: PTH208
    finally:
        folder.chmod(0o755)
        if not CONTIGUOUS:
            Path(path).chmod(0o755)
    if not CONTIGUOUS:
        s.append_data(noise(3))
    s.compact()
    s.close()
    assert elsewhere.content(path) == before + noise(3)


def read_only_file(folder: Path) -> None:
    """Allow to read the file, and then not even that."""
    elsewhere, path = Elsewhere(), str(folder / "data.b2frame")
    _become_nobody(folder)
    new(path).close()
    Path(path).chmod(0o444 if CONTIGUOUS else 0o555)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with refused(path, errno.EACCES, "Permission denied"):
        superchunk.open(path, mode="a")
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208
    with superchunk.open(path) as s:
        assert s[:] == NOISE[: 3 * CHUNK] == elsewhere.content(path)
    Path(path).chmod(0o000)
    with refused(path, errno.EACCES, "Permission denied"):
        superchunk.open(path)
    Path(path).chmod(0o644 if CONTIGUOUS else 0o755)
    with superchunk.open(path, mode="a") as s:
        s.append_data(noise(3))
    assert elsewhere.content(path) == NOISE[: 4 * CHUNK]


# Descriptors.


def no_descriptors(folder: Path) -> None:
    """Have so many files open that there can be no more."""
    elsewhere, path = Elsewhere(), str(folder / "data.b2frame")
    s = new(path)
    s.update_data(0, noise(1), copy=False)
    before = s[:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    taken: list[int] = []
    _take_all(taken)
    other = str(folder / "other")
    new_file: Callable[[], object] = lambda: new(other).close()  # noqa: E731
    calls: list[tuple[str, Callable[[], object]]] = [
        (path, lambda: superchunk.open(path).close()),
        (path, lambda: superchunk.open(path, snapshot=True).close()),
        (path, lambda: superchunk.open(path, mode="a").close()),
        (other, new_file),
        (path, s.compact),
    ]
    if not CONTIGUOUS:  # every chunk is in a file of its own
        calls[-1] = (path, lambda: s.__getitem__(slice(0, 1)))
        calls.append((path, lambda: s.append_data(noise(3))))
    for name, call in calls:
        with refused(name, errno.EMFILE, "Too many open files"):
            call()
        assert s.nchunks == 3
        if CONTIGUOUS:
            assert s[:] == before
    if CONTIGUOUS:
        s.append_data(noise(3))  # needs none
    for name, call in calls:
        free = 0
        while True:  # each call needs some; with fewer it must fail and give them back
            descriptors = _open_now(taken)
            try:
                with refused(name, errno.EMFILE, "Too many open files"):
                    call()
            except pytest.fail.Exception:
                break  # it had enough
            gc.collect()  # what the error held
            assert _open_now(taken) == descriptors, (name, call, free)
            os.close(taken.pop())
            free += 1
        assert free <= 8, free
        _take_all(taken)
    with refused(path, errno.EMFILE):  # the new name after compaction is not on the disk yet, or the index file
        s.flush()
    for _ in range(1 if CONTIGUOUS else 3):
        os.close(taken.pop())
    s.flush()
    for fd in taken:
        os.close(fd)
    assert elsewhere.content(path) == s[:] == before + noise(3)
    assert elsewhere.content(other) == NOISE[: 3 * CHUNK]
    assert sorted(os.listdir(folder)) == ["data.b2frame", "other"]  # noqa: PTH208
    superchunk.open(path, mode="a").close()


def _take_all(taken: list[int]) -> None:
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.dup(0))


def _open_now(taken: list[int]) -> int:
    """Return how many descriptors are open, for which one must be free."""
    os.close(taken.pop())
    count = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    taken.append(os.dup(0))
    return count


STORIES: dict[str, Callable[[Path], None]] = {
    story.__name__: story
    for story in (
        full_disk,
        full_file,
        full_at_exit,
        read_only_folder,
        read_only_file,
        no_descriptors,
    )
}


if __name__ == "__main__":
    STORIES[sys.argv[1]](Path(sys.argv[2]))
