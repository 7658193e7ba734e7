"""``superchunk convert`` between formats: an array is read box by box and written box by box.

::

    open SOURCE ──> Plan ──> create TARGET aside ──> boxes ──> attributes ──> [compare] ──> rename

A box has some 32 MB, or is one chunk if that is larger. The new array takes TARGET's name when it is complete; the old
file keeps the name until then.

Source: docs/cli.md, section "Arrays".
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

import superchunk
from superchunk.cli import output
from superchunk.cli.errors import Failure, describe, making
from superchunk.cli.files import STANDARD, aside_of, check_parent, writing_aside
from superchunk.cli.formats.attributes import DIMENSIONS
from superchunk.cli.formats.base import FOREIGN
from superchunk.cli.formats.boxes import aligned_boxes, box_shape, sequential_boxes
from superchunk.cli.formats.places import BLOSC2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from superchunk.cli.formats.base import Plan, Source, Target
    from superchunk.cli.formats.boxes import Tiling
    from superchunk.cli.formats.places import Place

__all__ = ["Job", "convert_array"]

_ZARR_PART: Final = re.compile(r"zarr\.json|\.zarray|\.zattrs|c|(c[./])?\d+([./]\d+)*")
"""Paths in the directory of a Zarr array: its metadata, and its chunks by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked for."""

    source: Place
    target: Place
    wishes: Plan
    """How to compress; shape and dtype are the source's."""
    force: bool
    verify: bool


def convert_array(job: Job) -> dict[str, Any]:
    """Make the array at the target, and return what was done, fit for JSON.

    Raises
    ------
    Failure
        It cannot be read, or not be made there.

    """
    try:
        source = job.source.open()
    except FOREIGN as error:
        raise _about(job.source.name, error) from error
    with contextlib.closing(source):
        plan = _plan(job, source)
        with _aside(job) as aside:
            try:
                with making(job.target.name):
                    facts = _write(job, source, plan, aside)
            except FOREIGN as error:
                raise _about(job.target.name, error) from error
    facts["target_bytes"] = _stored(Path(job.target.path))
    return facts


def _about(name: str, error: BaseException) -> Failure:
    text = describe(error)
    return Failure(text if name in text else f"{name}: {text}")


def _plan(job: Job, source: Source) -> Plan:
    """Return what is to be made of a source."""
    if not source.dtype.itemsize:
        raise Failure(f"{job.source.name}: items of dtype {source.dtype} have 0 bytes; there is nothing to convert")
    for name, sides in (("--chunks", job.wishes.chunks), ("--blocks", job.wishes.blocks)):
        if sides is not None and len(sides) != len(source.shape):
            raise click.UsageError(f"{name}: expected {len(source.shape)} numbers for the shape {source.shape}")
    return replace(
        job.wishes,
        shape=source.shape,
        dtype=source.dtype,
        fill=source.fill,
        dimensions=source.dimensions,
        hint=source.chunks,
    )


def _tiling(source: Source, target: Target) -> Tiling:
    """Return the boxes to move, in the order that suits the target."""
    shape, itemsize = source.shape, source.dtype.itemsize
    chunks = target.chunks
    if not target.sequential and chunks is None:
        chunks = source.chunks
    if target.sequential or chunks is None:
        return sequential_boxes(shape, itemsize, source.chunks)
    return aligned_boxes(shape, itemsize, tuple(max(part, 1) for part in chunks), source.chunks)


def _written(source: Source, tiling: Tiling) -> set[int] | None:
    """Return the numbers of the boxes of which anything was written, None if that is unknown: it may be all."""
    found: set[int] = set()
    known = source.visit_written(lambda start: found.update(tiling.meeting(start, source.chunks or source.shape)))
    return found if known else None


def _write(job: Job, source: Source, plan: Plan, aside: Path) -> dict[str, Any]:
    nbytes = int(np.prod(source.shape, dtype=object)) * plan.itemsize
    target = job.target.create(aside, plan, replace=job.force)
    with contextlib.closing(target):
        _move(job.target.name, source, target)
        left_out = _carry(source, target)
        target.finish()
        resolved = target.resolved
    if job.verify:
        _compare(job, source, aside, nbytes)
    return {
        "source": job.source.name,
        "target": job.target.name,
        "kind": job.target.kind,
        "shape": list(source.shape),
        "dtype": str(source.dtype),
        "nbytes": nbytes,
        **resolved,
        "dimensions": None if source.dimensions is None or DIMENSIONS in left_out else list(source.dimensions),
        "attributes": len(source.attributes) - len(left_out.keys() - {DIMENSIONS}),
        "left_out": left_out,
        "verified": job.verify,
    }


def _move(name: str, source: Source, target: Target) -> None:
    """Write all items; where nothing was written in the source, they are the fill value and are not read."""
    tiling = _tiling(source, target)
    written = _written(source, tiling)
    numbers: Iterable[int] = range(tiling.count)
    total = math.prod(source.shape)
    if written is not None and target.begins_filled:
        numbers = sorted(written)
        total = sum(math.prod(box_shape(tiling.box(number))) for number in numbers)
    raw = bytes(source.dtype.itemsize) if source.fill is None else source.fill
    fill = np.frombuffer(raw, source.dtype).reshape(())
    with output.progress(name, total * source.dtype.itemsize) as advance:
        for number in numbers:
            box = tiling.box(number)
            read = written is None or number in written
            values = source.read(box) if read else np.broadcast_to(fill, box_shape(box))
            target.write(box, values)
            nbytes = values.nbytes
            del values  # before the next box is read
            advance(nbytes)


def _carry(source: Source, target: Target) -> dict[str, str]:
    """Give the attributes to the target, and say of those that do not fit that they are dropped, and why."""
    left_out = {}
    if source.dimensions is not None and target.without_dimensions:
        left_out[DIMENSIONS] = f"dropped dimension names {list(source.dimensions)}: {target.without_dimensions}"
    for name, value in source.attributes.items():
        try:
            target.set_attribute(name, value)
        except FOREIGN as error:
            left_out[name] = f"dropped attribute {name!r} ({type(value).__name__}): {describe(error)}"
    return left_out


def _compare(job: Job, source: Source, aside: Path, nbytes: int) -> None:
    """Read the new array back, and raise unless it has the items of the source."""
    with (
        contextlib.closing(job.target.moved_to(aside).open()) as made,
        output.progress("comparing", nbytes) as advance,
    ):
        if made.shape != source.shape or made.dtype != source.dtype:
            raise Failure(
                f"{job.target.name}: expected shape {source.shape} and dtype {source.dtype} back, "
                f"found {made.shape} and {made.dtype}"
            )
        chunks = made.chunks or source.chunks
        tiling = (
            sequential_boxes(source.shape, source.dtype.itemsize)
            if chunks is None
            else aligned_boxes(source.shape, source.dtype.itemsize, chunks, source.chunks)
        )
        theirs, ours = _written(source, tiling), _written(made, tiling)
        both_known = theirs is not None and ours is not None and source.fill == made.fill
        for number in sorted((theirs or set()) | (ours or set())) if both_known else range(tiling.count):
            box = tiling.box(number)
            expected, found = np.ascontiguousarray(source.read(box)), np.ascontiguousarray(made.read(box))
            if expected.tobytes() != found.tobytes():
                raise Failure(f"{job.target.name}: the items of box {box} differ; the new array is removed")
            nbytes = expected.nbytes
            del expected, found
            advance(nbytes)


@contextlib.contextmanager
def _aside(job: Job) -> Iterator[Path]:
    """Give a path to write to, which becomes the target when the block ends well."""
    target, same_file = Path(job.target.path), job.source.path
    if job.target.kind == "hdf5":
        if target.is_file():
            # A dataset is added to a copy, so that nothing can happen to the others.
            with writing_aside(target, force=True) as aside:
                shutil.copyfile(target, aside)
                yield aside
            return
        same_file = STANDARD
    if Path(same_file).is_dir():
        same_file = STANDARD
    if job.target.kind == "zarr" or (job.target.kind in BLOSC2 and not job.wishes.contiguous):
        with _folder_aside(job, target) as aside:
            yield aside
        return
    if target.is_dir() and job.force:
        raise Failure(f"{target}: is a directory; a file does not replace a directory")
    with writing_aside(target, force=job.force, source=same_file) as aside:
        yield aside


@contextlib.contextmanager
def _folder_aside(job: Job, target: Path) -> Iterator[Path]:
    """Do as `writing_aside` does, for a directory."""
    there = os.path.lexists(target)
    if there and not job.force:
        raise Failure(f"{target}: already exists; use --force to replace it")
    source = Path(job.source.path).resolve()
    final = Path(os.path.realpath(target))
    if source == final or source in final.parents or final in source.parents:
        raise Failure(f"{target}: is, contains or is inside SOURCE")
    check_parent(target, final)
    if there:
        _check_replaceable(target, final, zarr=job.target.kind == "zarr")
    aside = aside_of(final, "part")
    try:
        yield aside
        if there:
            _replace_folder(target, aside, final, zarr=job.target.kind == "zarr")
        else:
            _rename_folder(target, aside, final)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check_replaceable(target: Path, place: Path, *, zarr: bool) -> None:
    """Raise unless `place`, which is or was `target`, is what the new array may replace: one of its own kind."""
    kind = superchunk.identify(place)
    if not zarr:
        if not kind.is_frame:
            raise Failure(f"{target}: is not a frame and is not replaced; it is {kind.label}")
        return
    if kind.name != "zarr" or not _is_zarr_array(place):
        raise Failure(f"{target}: is not a Zarr array and is not replaced")
    for part in place.rglob("*"):
        name = part.relative_to(place).as_posix()
        if part.is_symlink() or not _ZARR_PART.fullmatch(name):
            raise Failure(f"{target}: holds {name!r}, which is not a part of a Zarr array, and is not replaced")


def _is_zarr_array(folder: Path) -> bool:
    """Return whether a directory of Zarr is an array, and no group that may hold others."""
    if (folder / ".zarray").is_file():
        return True
    try:
        said = json.loads((folder / "zarr.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(said, dict) and said.get("node_type") == "array"


def _rename_folder(target: Path, old: Path, new: Path) -> None:
    """Rename a directory, unless something has the new name."""
    if os.path.lexists(new):
        raise Failure(f"{target}: created by another program meanwhile")
    old.rename(new)


def _replace_folder(target: Path, aside: Path, final: Path, *, zarr: bool) -> None:
    """Let `aside` take the name of `final`, which is checked once more when it has lost it, and removed."""
    old = aside_of(final, "old")
    final.rename(old)
    try:
        _check_replaceable(target, old, zarr=zarr)
        _rename_folder(target, aside, final)
        if not zarr:
            try:
                superchunk.remove_urlpath(old)
            except BaseException:
                final.rename(aside)
                raise
    except BaseException:
        if os.path.lexists(old) and not os.path.lexists(final):
            old.rename(final)
        raise
    if zarr:
        shutil.rmtree(old, ignore_errors=True)


def _stored(path: Path) -> int:
    """Return the bytes of a file, or of all files of a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
