"""The calls that change a disk: whole writes whatever the system takes at once, and errors that name the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from superchunk._store import os_file as file
from superchunk._store.os_file import FileBytes
from superchunk.exceptions import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@pytest.fixture
def written(tmp_path: Path) -> FileBytes:
    return FileBytes.create(str(tmp_path / "file"))


def test_more_buffers_than_the_system_takes_at_once_are_all_written(written: FileBytes) -> None:
    parts = [bytes([n % 256]) * (n % 7) for n in range(3000)]
    written.pwrite(parts, 5)
    whole = b"".join(parts)
    assert written.pread(len(whole) + 10, 0) == bytes(5) + whole
    written.close()


def test_short_writes_are_continued(written: FileBytes, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev

    def one_at_a_time(fd: int, buffers: Sequence[memoryview], at: int) -> int:
        return real(fd, [buffers[0][:1]], at)

    monkeypatch.setattr(os, "pwritev", one_at_a_time)
    written.pwrite([b"ab", b"", b"cde"], 0)
    written.pwrite(b"xyz", 5)
    assert written.pread(20, 0) == b"abcdexyz"
    written.close()


def test_refusals_are_storage_errors_that_name_the_file(tmp_path: Path) -> None:
    missing, there = str(tmp_path / "missing"), str(tmp_path / "there")
    FileBytes.create(there).close()
    calls: dict[str, Callable[[], None]] = {
        f"{there}/in": lambda: file.replace_file(there, f"{there}/in"),
        there: lambda: file.link_file(there, there),
        f"{there}/x": lambda: file.remove_file(f"{there}/x"),
        f"{missing}/in": lambda: file.make_folder(f"{missing}/in"),
        f"{missing}/out": lambda: file.remove_folder(f"{missing}/out"),
        missing: lambda: file.sync_folder(missing),
    }
    for path, call in calls.items():
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.filename == path
        assert caught.value.errno


def test_names_come_and_go(tmp_path: Path) -> None:
    folder, one, two = (str(tmp_path / name) for name in ("folder", "one", "two"))
    file.make_folder(folder)
    FileBytes.create(one).close()
    file.link_file(one, two)
    file.replace_file(two, f"{folder}/two")
    file.sync_folder(folder)
    file.remove_file(f"{folder}/two")
    file.remove_file(f"{folder}/two")
    file.remove_folder(folder)
    assert os.listdir(tmp_path) == ["one"]  # noqa: PTH208 - a plain name is what is asked for
