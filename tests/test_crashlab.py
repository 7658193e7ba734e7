"""Whatever a killed process or a loss of power leaves, a frame is what it was, or says that it is not.

The laboratory itself comes last: what it takes for possible, and that it finds what is broken.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from itertools import count, product
from random import Random
from typing import TYPE_CHECKING

import pytest
from crashlab import (
    SHORT,
    SHORT_ARRAYS,
    ArrayWay,
    Examination,
    Mark,
    Recorder,
    Recording,
    Session,
    Step,
    Way,
    Workload,
    drawn,
    drawn_array,
    examine,
    recording,
    run,
    shrunk,
)
from crashlab.content import observe
from crashlab.disk import ROOT, Create, Image, Mkdir, Rename, Sync, SyncFolder, Truncate, Write
from crashlab.losses import PowerLoss, killed
from crashlab.shelf import Shelf
from crashlab.steps import CHANGES, STEPS
from drawn import examples
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from superchunk._store.frame_store import FrameStore
from superchunk._store.os_file import FileBytes, make_folder, remove_file, remove_folder, replace_file, sync_folder
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from crashlab import Tally
    from crashlab.disk import Op

    from superchunk.params import SyncLevel

STATES = 100_000


def told(tallies: Sequence[Tally]) -> str:
    return "\n".join(str(failure) for tally in tallies for failure in tally.failures)


# Frames.


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workload", SHORT, ids=lambda workload: workload.name)
def test_short_workload_survives_every_crash(workload: Workload, tmp_path: Path) -> None:
    tallies = examine(workload, str(tmp_path), Random(1), most=100, exhaustive=3000)
    assert not told([*tallies.values()])
    assert tallies["kill"].outcomes["present"] == tallies["kill"].tried


@pytest.mark.timeout(600)
def test_drawn_workloads_survive_crashes(tmp_path: Path) -> None:
    report = run(STATES, 0, str(tmp_path))
    print(report)  # noqa: T201 - the number of states tried is asked for
    assert report.total.tried >= STATES
    assert not report.broken, "\n".join(f"{workload}\n{told([tally])}" for workload, tally in report.broken[:3])


# Arrays: shape and items, the old ones or the new.


@pytest.mark.parametrize("workload", SHORT_ARRAYS, ids=lambda workload: workload.name)
def test_short_workload_with_an_array_survives_crashes(workload: Workload, tmp_path: Path) -> None:
    tallies = examine(workload, str(tmp_path), Random(1), most=8)
    assert not told([*tallies.values()])
    assert tallies["kill"].outcomes["present"] == tallies["kill"].tried


@pytest.mark.parametrize("seed", range(5))
def test_drawn_workload_with_an_array_survives_crashes(seed: int, tmp_path: Path) -> None:
    tallies = examine(drawn_array(seed), str(tmp_path), Random(1), most=8)
    assert not told([*tallies.values()])


@pytest.mark.parametrize("contiguous", [True, False], ids=["file", "folder"])
def test_a_resize_of_several_commits_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contiguous: bool
) -> None:
    """Else the tests above would say nothing: here chunks and shape are committed one after the other."""
    monkeypatch.setattr(FrameStore, "batch", lambda _: nullcontext())
    steps = tuple(Step("reshape", seed) for seed in range(4))
    workload = Workload("resized", steps, ArrayWay(contiguous=contiguous, sync="commit"))
    assert told([*examine(workload, str(tmp_path), Random(1), most=8).values()])


class Crashes(RuleBasedStateMachine):
    """Any steps; when they end, every crash in between is tried."""

    folders = count()
    root: Path

    @initialize(
        varying=st.booleans(),
        chunksize=st.sampled_from([400, 2000]),
        meta=st.sampled_from([8, 24]),
        contiguous=st.booleans(),
        sync=st.sampled_from(["explicit", "commit"]),
    )
    def make(self, *, varying: bool, chunksize: int, meta: int, contiguous: bool, sync: SyncLevel) -> None:
        self.folder = self.root / str(next(self.folders))
        (self.folder / "work").mkdir(parents=True)
        (self.folder / "look").mkdir()
        way = Way(varying=varying, chunksize=chunksize, meta=meta, contiguous=contiguous, sync=sync)
        self.session = Session(str(self.folder / "work"), way)
        self.session.__enter__()
        self.session.do_all([])
        self.steps: list[Step] = []

    @rule(name=st.sampled_from(sorted(CHANGES)), seed=st.integers(0, 50))
    def change(self, name: str, seed: int) -> None:
        self.do(Step(name, seed))

    @rule(name=st.sampled_from(sorted(set(STEPS) - set(CHANGES) - {"grow_much"})), seed=st.integers(0, 50))
    def other_step(self, name: str, seed: int) -> None:
        self.do(Step(name, seed))

    def do(self, step: Step) -> None:
        if self.session.do(step):
            self.steps.append(step)

    def teardown(self) -> None:
        if not hasattr(self, "session"):
            return
        self.session.__exit__(None, None, None)
        examination = Examination(self.session.recording, observe, str(self.folder / "look"))
        broken = told([examination.kill(), examination.power(Random(0), 20)])
        if broken:
            workload = shrunk(Workload("drawn", tuple(self.steps), self.session.way), str(self.root))
            pytest.fail(f"{workload}\n{broken}")


@pytest.mark.timeout(600)
def test_any_steps_survive_crashes(tmp_path: Path) -> None:
    Crashes.root = tmp_path
    # The steps of a failure are made fewer by `shrunk`, which knows that each is a recipe of its own.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    run_state_machine_as_test(Crashes, settings=settings(examples(40), phases=phases))


# The laboratory finds what is broken: frames on a disk that forgets or goes ahead.


class Forgetful(Recorder):
    """A disk that is never asked to keep anything."""

    def sync(self, fd: int) -> None:
        os.fstat(fd)


class ForgetfulOfNames(Recorder):
    """A disk that is never asked to keep names."""

    def sync_folder(self, path: str) -> None:
        assert os.path.isdir(path)  # noqa: PTH112


def recorded(folder: Path, kind: type[Recorder], workload: Workload) -> Recording:
    (folder / "work").mkdir()
    (folder / "look").mkdir()
    with workload.session(str(folder / "work"), kind(str(folder / "work"))) as session:
        session.do_all(workload.steps)
    return session.recording


@pytest.mark.parametrize("kind", [Forgetful, ForgetfulOfNames])
def test_a_frame_that_is_not_synced_is_found(kind: type[Recorder], tmp_path: Path) -> None:
    examination = Examination(recorded(tmp_path, kind, SHORT[0]), observe, str(tmp_path / "look"))
    assert not examination.kill().failures
    assert examination.power(Random(1), 100).failures


def test_a_header_that_is_written_before_what_it_names_is_found(tmp_path: Path) -> None:
    what = recorded(tmp_path, Recorder, SHORT[0])
    ops = what.ops
    for at in range(len(ops) - 1):
        first, second = ops[at], ops[at + 1]
        match ops[at : at + 3]:
            case [Write(at=place), Write(at=0), *_] if place:
                ops[at], ops[at + 1] = second, first
            case [Write(at=place), Sync(), Write(at=0)] if place:
                ops[at], ops[at + 2] = ops[at + 2], first
    assert Examination(what, observe, str(tmp_path / "look")).kill().failures


def test_content_that_changes_on_its_way_to_the_disk_is_found(tmp_path: Path) -> None:
    what = recorded(tmp_path, Recorder, SHORT[0])
    what.marks[-1] = what.marks[-1]._replace(content=what.marks[1].content)
    assert Examination(what, observe, str(tmp_path / "look")).kill().failures


# And in a store as simple as can be, which keeps one value.

LENGTH = 8


def value_at(path: str, *, recover: bool = False) -> bytes | None:
    """Return the value in a file; there is nothing to recover from."""
    if not os.path.lexists(path):
        return None
    with open(path, "rb") as file:  # noqa: PTH123
        raw = file.read()
    length = int.from_bytes(raw[:LENGTH], "little")
    if recover or len(raw) < LENGTH or len(raw) - LENGTH < length:
        raise FormatError("value", at=0, expected=length, found=len(raw))
    return raw[LENGTH : LENGTH + length]


def put_aside(path: str, value: bytes, *, sync: bool = True, sync_name: bool = True) -> None:
    file = FileBytes.create(f"{path}.new")
    file.pwrite([len(value).to_bytes(LENGTH, "little"), value], 0)
    if sync:
        file.sync()
    file.close()
    replace_file(f"{path}.new", path)
    if sync_name:
        sync_folder(os.path.dirname(path))  # noqa: PTH120


def put_aside_without_sync(path: str, value: bytes) -> None:
    put_aside(path, value, sync=False)


def put_aside_without_its_name(path: str, value: bytes) -> None:
    put_aside(path, value, sync_name=False)


def put_in_place(path: str, value: bytes) -> None:
    if not os.path.lexists(path):
        put_aside(path, value)
        return
    file = FileBytes.open(path)
    file.enable_writing()
    file.pwrite([len(value).to_bytes(LENGTH, "little"), value], 0)
    file.truncate(LENGTH + len(value))
    file.sync()
    file.close()


def put_after_removing(path: str, value: bytes) -> None:
    remove_file(path)
    put_aside(path, value)


@pytest.mark.parametrize(
    ("put", "kills", "losses"),
    [
        (put_aside, False, False),
        (put_aside_without_sync, False, True),
        (put_aside_without_its_name, False, True),
        (put_in_place, True, True),
        (put_after_removing, True, True),
    ],
)
def test_ways_to_store_a_value(
    put: Callable[[str, bytes], None],
    kills: bool,  # noqa: FBT001
    losses: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "look").mkdir()
    recorder = Recorder(str(tmp_path / "work"))
    what = Recording("value", recorder.ops)
    with recording(recorder):
        for number in (1, 2, 3):
            start, value = len(recorder.ops), bytes([number]) * 700 * number
            put(f"{recorder.root}/value", value)
            what.marks.append(Mark(f"put {number}", start, len(recorder.ops), value, "durable"))
    examination = Examination(what, value_at, str(tmp_path / "look"))
    assert bool(examination.kill().failures) is kills
    assert bool(examination.power(Random(1), 300, exhaustive=3000).failures) is losses


# What it takes for possible.


def left(ops: Sequence[Op]) -> list[dict[str, bytes]]:
    """Return all that a loss of power may leave after `ops`, by path."""
    loss = PowerLoss()
    for op in ops:
        loss.step(op)
    return [by_path(image) for image in loss.states(Random(1), 10_000, 10_000)]


def by_path(image: Image) -> dict[str, bytes]:
    contents = dict(image.contents)
    return {path: contents[inode] for path, inode in image.names}


FILE: list[Op] = [Create(1, ROOT, "a"), SyncFolder(ROOT)]


def test_what_is_synced_is_certain() -> None:
    assert left([*FILE, Write(1, 0, b"x" * 2000), Sync(1)]) == [{"a": b"x" * 2000}]
    assert left([*FILE, Write(1, 0, b"x" * 2000), Truncate(1, 7), Sync(1)]) == [{"a": b"x" * 7}]


def test_a_synced_file_may_have_no_name() -> None:
    assert {} in left([Create(1, ROOT, "a"), Write(1, 0, b"x"), Sync(1)])
    assert left([Create(1, ROOT, "a"), Write(1, 0, b"x"), Sync(1), SyncFolder(ROOT)]) == [{"a": b"x"}]


def test_a_name_may_be_there_without_the_bytes() -> None:
    found = left([*FILE, Create(2, ROOT, "b"), Write(2, 0, b"new"), Rename(ROOT, "b", ROOT, "a")])
    assert {"a": b""} in found
    assert {"a": bytes(3)} in found
    assert {"a": b"new"} in found
    assert {"a": b"", "b": b"new"} in found


def test_any_sectors_of_a_write_may_be_lost() -> None:
    parts = (b"x" * 412, b"y" * 512, b"z" * 76)
    found = left([*FILE, Write(1, 0, b"-" * 100), Sync(1), Write(1, 100, b"".join(parts))])
    for kept in product((False, True), repeat=3):
        body = b"".join(part if keep else bytes(len(part)) for part, keep in zip(parts, kept, strict=True))
        assert {"a": b"-" * 100 + body} in found
    assert {"a": b"-" * 100} in found


def test_a_sector_is_never_newer_without_being_older() -> None:
    found = left([*FILE, Write(1, 0, b"1" * 20), Sync(1), Write(1, 0, b"2" * 10), Write(1, 10, b"3" * 10)])
    assert {state["a"] for state in found} == {b"1" * 20, b"2" * 10 + b"1" * 10, b"2" * 10 + b"3" * 10}


def test_sectors_are_written_in_any_order() -> None:
    found = left([*FILE, Write(1, 0, b"1" * 1024), Sync(1), Write(1, 0, b"2"), Write(1, 1000, b"3")])
    assert {state["a"][0:1] + state["a"][1000:1001] for state in found} == {b"11", b"12"[:1] + b"3", b"21", b"23"}


def test_what_was_cut_off_does_not_come_back_in_a_file_that_grows() -> None:
    found = left([*FILE, Write(1, 0, b"1" * 900), Sync(1), Truncate(1, 100), Write(1, 1000, b"2" * 24)])
    grown = {state["a"] for state in found if len(state["a"]) == 1024}
    assert {raw[100:900] for raw in grown} == {bytes(800)}
    assert {state["a"] for state in found if len(state["a"]) == 100} == {b"1" * 100}


def test_names_persist_in_order_within_a_directory() -> None:
    ops: list[Op] = [Create(1, ROOT, "a"), Create(2, ROOT, "b"), Rename(ROOT, "a", ROOT, "c")]
    assert {tuple(state) for state in left(ops)} == {(), ("a",), ("a", "b"), ("b", "c")}


def test_a_move_between_directories_is_in_both_or_in_none() -> None:
    ops: list[Op] = [Create(1, ROOT, "a"), Mkdir(2, ROOT, "d"), SyncFolder(ROOT), Rename(ROOT, "a", 2, "a")]
    assert {tuple(state) for state in left(ops)} == {("a",), ("d/a",)}
    assert {tuple(state) for state in left([*ops, SyncFolder(2)])} == {("d/a",)}


def test_a_kill_tears_a_write_at_sectors_of_the_file() -> None:
    ops = [*FILE, Write(1, 100, b"x" * 1000)]
    assert [cut for done, cut, _ in killed(ops) if done == 3] == [412, 924, -1]
    assert [len(by_path(image)["a"]) for done, _, image in killed(ops) if done == 3] == [512, 1024, 1100]


def found_in(folder: str) -> Iterator[tuple[str, bytes, int]]:
    """Yield path, bytes and inode of every file."""
    for where, _, names in os.walk(folder):
        for name in names:
            path = f"{where}/{name}"
            with open(path, "rb") as file:  # noqa: PTH123
                yield os.path.relpath(path, folder), file.read(), os.stat(path).st_ino  # noqa: PTH116


@pytest.mark.parametrize("seed", range(5))
def test_steps_done_again_give_the_same_disk(seed: int, tmp_path: Path) -> None:
    what = recorded(tmp_path, Recorder, drawn(seed))
    *_, (_, _, last) = killed(what.ops)
    assert by_path(last) == {path: raw for path, raw, _ in found_in(str(tmp_path / "work"))}


def test_steps_on_directories_and_links_give_the_same_disk(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    recorder = Recorder(str(tmp_path / "work"))
    root = recorder.root
    with recording(recorder):
        for folder in ("one", "two", "three"):
            make_folder(f"{root}/{folder}")
        for name in ("one/a", "one/b", "two/c"):
            file = FileBytes.create(f"{root}/{name}")
            file.pwrite([name.encode(), b"!"], 3)
            file.close()
        recorder.link(f"{root}/one/a", f"{root}/two/a")
        replace_file(f"{root}/one/a", f"{root}/two/a")  # of one file both names stay
        replace_file(f"{root}/one/b", f"{root}/two/c")
        replace_file(f"{root}/two", f"{root}/four")
        remove_folder(f"{root}/three")
    *_, (_, _, last) = killed(recorder.ops)
    real = {path: (raw, inode) for path, raw, inode in found_in(root)}
    assert by_path(last) == {path: raw for path, (raw, _) in real.items()}
    assert sorted(real) == ["four/a", "four/c", "one/a"]
    assert dict(last.names)["four/a"] == dict(last.names)["one/a"]
    assert last.folders == ("four", "one")


@pytest.mark.parametrize("seed", range(5))
def test_a_shelf_shows_each_image(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    with Shelf(str(tmp_path), 10**18) as shelf:
        for _ in range(60):
            folders = tuple(sorted(rng.sample(["d", "e"], rng.randint(0, 2))))
            paths = ["a", "b", "c", *(f"{folder}/x" for folder in folders)]
            names = {path: rng.randint(1, 4) for path in rng.sample(paths, rng.randint(0, len(paths)))}
            contents = {inode: rng.randbytes(rng.randint(0, 9)) for inode in set(names.values())}
            image = Image(tuple(sorted(names.items())), folders, tuple(sorted(contents.items())))
            shelf.put(image)
            real = {path: (raw, inode) for path, raw, inode in found_in(str(tmp_path))}
            assert {path: raw for path, (raw, _) in real.items()} == by_path(image)
            for one, other in product(names, repeat=2):
                assert (names[one] == names[other]) is (real[one][1] == real[other][1])
            assert all(os.stat(tmp_path / path).st_mtime_ns == 10**18 for path in names)  # noqa: PTH116
    assert not list(tmp_path.iterdir())
