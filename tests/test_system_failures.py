"""When the system refuses: clear errors, the last commit intact, the handle of use afterwards.

The stories themselves are in failing_system.py, a process for each.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from failing_system import CANNOT, CHUNK, NOISE, new, noise
from other_process import Other

import superchunk
from superchunk._store import os_file as storage_file
from superchunk.exceptions import FormatError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from superchunk.params import SyncLevel

HERE = Path(__file__).parent


CONTIGUOUS = pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data.b2frame")


@pytest.fixture
def reader(path: str) -> Iterator[Other]:
    """Another process that has the frame open for reading, of which it has read nothing yet."""
    new(path).close()
    with Other(f"import superchunk\ns = superchunk.open({path!r})") as other:
        yield other


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Other]:
    """Another process, for those who have many questions."""
    with Other("import superchunk") as other:
        yield other


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """Make a directory that a process without rights can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def tell(story: str, folder: Path, *before: str, contiguous: bool) -> str:
    """Tell a story of failing_system.py; return what it wrote on its way."""
    kind = "file" if contiguous else "folder"
    command = [*before, sys.executable, str(HERE / "failing_system.py"), story, str(folder), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == CANNOT:
        pytest.skip(f"this system does not let us tell the story {story}")
    assert done.returncode == 0, done.stderr
    return done.stderr


def read(path: str) -> bytes:
    """Return what another process finds."""
    with Other("import superchunk") as other:
        return bytes.fromhex(other(f"superchunk.open({path!r}, verify='read')[:].hex()"))


# Full, and refused.


@CONTIGUOUS
def test_a_full_disk_loses_nothing(tmp_path: Path, *, contiguous: bool) -> None:
    """Every change is refused and undone, what waits is kept until there is room."""
    own_mounts = [shutil.which("unshare") or "", "--user", "--map-root-user", "--mount"]
    if not own_mounts[0] or subprocess.run([*own_mounts, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own cannot be made here")
    assert tell("full_disk", tmp_path, *own_mounts, contiguous=contiguous) == ""


@CONTIGUOUS
def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path, *, contiguous: bool) -> None:
    assert tell("full_file", tmp_path, contiguous=contiguous) == ""


@CONTIGUOUS
def test_what_cannot_be_committed_at_exit_is_told(tmp_path: Path, *, contiguous: bool) -> None:
    told = tell("full_at_exit", tmp_path, contiguous=contiguous)
    path = str(tmp_path / "data.b2frame")
    assert f"RuntimeWarning: {path}: changes that waited for their commit are lost" in told
    assert told.count("are lost (4 chunks, of which the file has 3)") == 1
    assert read(path) == NOISE[: 3 * CHUNK]


@CONTIGUOUS
@pytest.mark.parametrize("story", ["read_only_folder", "read_only_file"])
def test_missing_permissions_are_named(anybodys: Path, story: str, *, contiguous: bool) -> None:
    assert tell(story, anybodys, contiguous=contiguous) == ""


@CONTIGUOUS
def test_running_out_of_descriptors_is_told_and_leaks_none(tmp_path: Path, *, contiguous: bool) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("the system does not tell which descriptors are open")
    assert tell("no_descriptors", tmp_path, contiguous=contiguous) == ""


# Removed, replaced, cut off.


def test_a_writer_does_not_commit_to_a_removed_file(path: str, reader: Other, tmp_path: Path) -> None:
    s = superchunk.open(path, mode="a")
    s.append_data(bytes(CHUNK))  # waits
    Path(path).unlink()
    with pytest.raises(StorageError, match="removed or replaced while it was open") as e:
        s.flush()
    assert path in str(e.value)
    with pytest.raises(StorageError, match="removed or replaced while it was open"):
        s.append_data(NOISE[-4 * CHUNK :])  # large enough for a commit of its own
    assert not Path(path).exists()
    assert reader("s[:].hex()") == NOISE[: 3 * CHUNK].hex()
    # Nothing is lost: it can be written elsewhere.
    assert s[:] == NOISE[: 3 * CHUNK] + bytes(CHUNK)
    with pytest.raises(StorageError):
        s.close()
    rescued = str(tmp_path / "rescued")
    s.copy(urlpath=rescued).close()
    assert read(rescued) == s[:]
    with pytest.warns(RuntimeWarning, match="4 chunks, of which the file has 3"):  # noqa: PT031 - dropping is the point
        del s, e  # whose traceback knows the handle
        gc.collect()
    # The name is free for a new one, which the reader follows.
    other = new(path, 2)
    assert reader("s[:].hex()") == NOISE[: 2 * CHUNK].hex()
    other.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_writer_does_not_write_into_a_directory_that_took_the_name(
    path: str, tmp_path: Path, *, replaced: bool
) -> None:
    s = new(path, contiguous=False)
    s.append_data(bytes(CHUNK))  # waits
    moved = Path(path).rename(tmp_path / "moved")
    before: set[str] = set()
    if replaced:
        with superchunk.SChunk(chunksize=CHUNK, data=noise(7), urlpath=path, contiguous=False):
            pass
        before = {file.name for file in Path(path).iterdir()}
    held = {file.name for file in moved.iterdir()}
    for change in (s.flush, lambda: s.append_data(noise(8))):
        with pytest.raises(StorageError, match="removed or replaced while it was open") as e:
            change()
        assert path in str(e.value)
        assert s[:] == NOISE[: 3 * CHUNK] + bytes(CHUNK)
    assert {file.name for file in moved.iterdir()} == held
    if replaced:
        assert {file.name for file in Path(path).iterdir()} == before
        assert read(path) == noise(7)
        shutil.rmtree(path)
    else:
        assert not Path(path).exists()
    moved.rename(path)
    s.close()  # nothing was lost
    assert read(path) == NOISE[: 3 * CHUNK] + bytes(CHUNK)


def test_a_writer_goes_on_with_the_file_that_took_the_name(path: str, reader: Other, tmp_path: Path) -> None:
    s = superchunk.open(path, mode="a")
    elsewhere = str(tmp_path / "elsewhere")
    replacement = b"".join(noise(n) for n in (7, 8))
    with superchunk.SChunk(chunksize=CHUNK, data=replacement, urlpath=elsewhere, cparams={"typesize": 4}):
        pass
    Path(elsewhere).replace(path)
    s.append_data(noise(9))
    s.flush()
    assert read(path) == s[:] == replacement + noise(9)
    assert reader("s[:].hex()") == s[:].hex()
    s.close()


def test_changes_that_wait_are_not_mixed_into_a_file_that_took_the_name(path: str, tmp_path: Path) -> None:
    s = new(path)
    s.append_data(bytes(CHUNK))  # waits
    elsewhere = str(tmp_path / "elsewhere")
    with superchunk.SChunk(chunksize=CHUNK, data=noise(7), urlpath=elsewhere, cparams={"typesize": 4}):
        pass
    replacement = Path(elsewhere).read_bytes()
    Path(elsewhere).replace(path)
    with pytest.raises(StorageError, match="changed by another process while changes made here waited") as e:
        s.flush()
    assert path in str(e.value)
    assert Path(path).read_bytes() == replacement
    assert s[:] == noise(7)
    s.append_data(noise(8))
    s.close()
    assert read(path) == noise(7) + noise(8)


@pytest.mark.parametrize("seed", range(3))
def test_a_file_cut_off_under_a_reader_is_an_error_and_no_signal(path: str, reader: Other, seed: int) -> None:
    raw = Path(path).read_bytes()
    reader(
        "def outcome():\n"
        "    try:\n        return s[:].hex()\n"
        "    except superchunk.exceptions.SuperchunkError as error:\n"
        "        return f'{type(error).__name__}: {error}'\n"
    )
    rng = random.Random(seed)
    whole = NOISE[: 3 * CHUNK].hex()
    for size in sorted({0, 1, 50, 87, 97, *(rng.randrange(len(raw)) for _ in range(20))}, reverse=True):
        os.truncate(path, size)
        found = reader("outcome()")
        if size < raw.index(noise(2)[:100]) + CHUNK:
            assert found != whole, size
        if found != whole:
            assert found.startswith(("TruncatedError: ", "FormatError: ")), found
            assert any(word in found for word in ("need", "expected")), found
        with Path(path).open("r+b") as file:
            file.write(raw)
        assert reader("outcome()") == whole
    os.truncate(path, 100)
    with pytest.raises(FormatError, match=path):
        superchunk.open(path)


def test_a_file_cut_off_under_a_writer_is_not_made_worse(path: str) -> None:
    """It knows that bytes are missing before it writes more."""
    s = new(path)
    os.truncate(path, 3000)
    with pytest.raises((FormatError, StorageError)):
        s[:]
    with pytest.raises((FormatError, StorageError)) as e:
        s.compact()
    assert path in str(e.value) or "chunk" in str(e.value)
    assert os.listdir(Path(path).parent) == ["data.b2frame"]  # noqa: PTH208


# A disk that cannot be waited for.


class Impatient(storage_file.System):
    """Fails once when the disk is waited for, after so many times."""

    def __init__(self, after: int) -> None:
        self.after = after

    def _count(self) -> None:
        self.after -= 1
        if self.after == -1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)

    def sync_named(self, path: str) -> None:
        self._count()
        super().sync_named(path)

    def sync_folder(self, path: str) -> None:
        self._count()
        super().sync_folder(path)


def _append(s: superchunk.SChunk) -> None:
    with s.transaction():
        s.append_data(noise(3))
        s.vlmeta["more"] = 1


def _update_and_flush(s: superchunk.SChunk) -> None:
    s.update_data(1, noise(4), copy=False)
    s.append_data(bytes(CHUNK))
    s.flush()


def _empty(s: superchunk.SChunk) -> None:
    with s.transaction():
        while s.nchunks:
            s.delete_chunk(0)


def _change_layer(s: superchunk.SChunk) -> None:
    s.meta["fixed"] = 255
    s.flush()


@pytest.mark.parametrize("change", [_append, _update_and_flush, _empty, _change_layer, superchunk.SChunk.compact])
@pytest.mark.parametrize(
    ("contiguous", "fixed", "after"),
    [
        *((True, b"", after) for after in range(4)),
        *((True, b"x" * 600, after) for after in range(4)),  # a header longer than a disk's sector
        *((False, b"", after) for after in range(6)),
    ],
)
def test_a_sync_that_fails_leaves_memory_and_file_alike(
    path: str,
    elsewhere: Other,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[superchunk.SChunk], None],
    fixed: bytes,
    after: int,
    *,
    contiguous: bool,
) -> None:
    """Before the switch to the new state nothing has changed, after it everything."""
    meta: dict[str | bytes, object] = {"fixed": 200, "long": fixed}
    how: dict[str, Any] = {"contiguous": contiguous, "meta": meta, "cparams": {"typesize": 4}}
    s = superchunk.SChunk(chunksize=CHUNK, urlpath=path, mode="w", **how)
    s.append_data(noise(0))
    s.append_data(noise(1))
    s.flush()
    monkeypatch.setattr(storage_file, "system", Impatient(after))
    try:
        change(s)
    except StorageError as error:
        assert path in str(error)  # noqa: PT017 - it need not come
        assert ".new" not in str(error)  # noqa: PT017 - as above
    monkeypatch.undo()
    with superchunk.open(path, snapshot=True) as there:
        if change is _update_and_flush and there.nchunks == 2:
            assert there[:] in (noise(0) + noise(1), noise(0) + noise(4))  # it may wait in part
        else:
            assert there[:] == s[:]
            assert there.vlmeta.getall() == s.vlmeta.getall()
            assert there.meta["fixed"] == s.meta["fixed"]
    s.append_data(noise(5))
    s.flush()
    expected = s[:]
    assert expected.endswith(noise(5))
    s.close()
    assert elsewhere(f"superchunk.open({path!r}, verify='read')[:].hex()") == expected.hex()
    assert superchunk.verify(path).status == "sound"


@CONTIGUOUS
@pytest.mark.parametrize("change", [_append, _update_and_flush, _empty])
def test_a_flush_after_a_sync_that_failed_waits_for_the_disk(
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[superchunk.SChunk], None],
    *,
    contiguous: bool,
) -> None:
    """Whichever of the waits it was that failed, the last one for the new name included."""
    for after in range(10):
        s = new(path, contiguous=contiguous)
        failing = Impatient(after)
        monkeypatch.setattr(storage_file, "system", failing)
        with contextlib.suppress(StorageError):
            change(s)
        before = failing.after
        if before >= 0:  # there were not so many
            s.close()
            break
        changed = s[:] != NOISE[: 3 * CHUNK]
        s.flush()
        assert failing.after < before or not changed, after
        s.close()
    assert 1 < after < 9


# What killed writers leave.


def test_compaction_removes_what_killed_writers_left(path: str, tmp_path: Path) -> None:
    s = new(path)
    stray = tmp_path / ".data.b2frame.0123456789ab.new"
    recent = tmp_path / ".data.b2frame.0123456789ac.new"
    in_use = tmp_path / ".data.b2frame.0123456789ad.new"
    others = [
        tmp_path / name
        for name in (".other.0123456789ab.new", ".data.b2frame.0123456789a.new", "data.b2frame.0123456789ab.new")
    ]
    for file in (stray, recent, in_use, *others):
        file.write_bytes(b"some bytes of a frame")
        if file != recent:
            os.utime(file, (1e9, 1e9))
    with Other(f"import fcntl\nfile = open({str(in_use)!r}, 'r+b')\nfcntl.flock(file, fcntl.LOCK_EX)"):
        s.compact()
        assert sorted(tmp_path.iterdir()) == sorted([Path(path), recent, in_use, *others])
    os.utime(recent, (1e9, 1e9))
    s.compact()
    assert sorted(tmp_path.iterdir()) == sorted([Path(path), *others])


@CONTIGUOUS
def test_compaction_removes_directories_that_were_left_beside_a_frame(
    path: str, tmp_path: Path, *, contiguous: bool
) -> None:
    """Of writers that were killed before they gave a new directory its name, or after it; and of snapshots."""
    s = new(path, contiguous=contiguous)
    names = {kind: tmp_path / f".data.b2frame.0123456789a{n}.{kind}" for n, kind in enumerate(("new", "old", "kept"))}
    other = tmp_path / ".other.0123456789ab.old"
    for folder in (*names.values(), other):
        new(str(folder), 1, contiguous=False).close()
    os.utime(names["new"], (1e9, 1e9))
    (names["kept"] / "chunks.b2frame").rename(names["kept"] / ".pinned-0123456789ab.b2frame")
    pinned = superchunk.open(names["old"], snapshot=True)
    s.compact()
    kept = names["old"].with_suffix(".kept")
    assert sorted(tmp_path.iterdir()) == sorted([Path(path), kept, other])
    assert pinned[:] == noise(0)
    pinned.close()
    s.compact()
    assert sorted(tmp_path.iterdir()) == sorted([Path(path), other])
    assert s[:] == NOISE[: 3 * CHUNK]
    s.close()


# The disk says no when it is waited for.


class DeafDisk(storage_file.System):
    """A system of which one wait for the disk fails, the `number`-th from 0; after that all go well."""

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self.waits = 0

    def _wait(self) -> None:
        self.waits += 1
        if self.waits - 1 == self.number:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def sync(self, fd: int) -> None:
        self._wait()
        super().sync(fd)

    def sync_named(self, path: str) -> None:
        self._wait()
        super().sync_named(path)

    def sync_filesystem(self, path: str) -> None:
        self._wait()
        super().sync_filesystem(path)

    def sync_folder(self, path: str) -> None:
        self._wait()
        super().sync_folder(path)


def _in_a_transaction(s: superchunk.SChunk) -> None:
    with s.transaction():
        s.append_data(noise(3))
        s.vlmeta["nchunks"] = 4


def _and_flush(s: superchunk.SChunk) -> None:
    s.append_data(bytes(CHUNK))  # waits
    s.flush()


WAITING: dict[str, tuple[SyncLevel, Callable[[superchunk.SChunk], object]]] = {
    "a transaction": ("explicit", _in_a_transaction),
    "flush": ("explicit", _and_flush),
    "metadata": ("commit", lambda s: s.vlmeta.__setitem__("nchunks", 4)),
}
"""What waits for the disk, and the level of `sync` at which it does."""


def waits_of(
    change: Callable[[superchunk.SChunk], object], s: superchunk.SChunk, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Make a change, and return how often it waited for the disk."""
    disk = DeafDisk()
    with monkeypatch.context() as patched:
        patched.setattr(storage_file, "system", disk)
        change(s)
    return disk.waits


@CONTIGUOUS
@pytest.mark.parametrize("what", WAITING)
def test_a_failed_wait_for_the_disk_raises_and_the_last_one_leaves_the_new_state_in_force(
    path: str, elsewhere: Other, monkeypatch: pytest.MonkeyPatch, what: str, *, contiguous: bool
) -> None:
    """Here and for other processes it is one state: the old one up to some wait, the new one from there on."""

    def there() -> tuple[bytes, object]:
        found = f"superchunk.open({path!r}, verify='read')"
        return bytes.fromhex(elsewhere(f"{found}[:].hex()")), elsewhere(f"{found}.vlmeta['nchunks']")

    level, change = WAITING[what]
    new(path, contiguous=contiguous).close()
    before = there()
    with superchunk.open(path, mode="a", sync=level) as s:
        waits = waits_of(change, s, monkeypatch)
        after = s[:], s.vlmeta["nchunks"]
    assert waits > 1
    in_force = []
    for number in range(waits):
        new(path, contiguous=contiguous).close()
        with superchunk.open(path, mode="a", sync=level) as s:
            with monkeypatch.context() as patched:
                patched.setattr(storage_file, "system", DeafDisk(number))
                with pytest.raises(StorageError, match="Input/output error") as caught:
                    change(s)
            assert caught.value.errno == errno.EIO
            assert path in str(caught.value)
            found = there()
            in_force.append(found == after)
            assert found in {before, after}
            if what != "flush":  # which commits a change that stays in any case
                assert (s[:], s.vlmeta["nchunks"]) == found
            if found == after:
                assert waits_of(lambda s: s.flush(), s, monkeypatch) > 0  # the disk is waited for again
            elif what != "flush":
                change(s)
            s.flush()
            assert (s[:], s.vlmeta["nchunks"]) == there() == after
        assert superchunk.verify(path).status == "sound"
    assert in_force == sorted(in_force)
    assert (in_force[0], in_force[-1]) == (False, True)
