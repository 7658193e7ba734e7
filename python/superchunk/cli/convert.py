"""``superchunk convert``: one file to a directory and back, frames of old writers to today's, arrays between formats.

This module copies a Blosc2 frame to a frame with the same items; `convert_arrays` handles other formats and other
chunks. Chunks are copied unchanged, a few megabytes at a time, and then compared one by one. A file at the target is
replaced when the new frame is complete.

Source: docs/cli.md, section "convert"; docs/format/sparse.md, "Conversion".
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

import superchunk
from superchunk import SpecialValue
from superchunk.cli import output
from superchunk.cli.convert_arrays import Job, convert_array
from superchunk.cli.errors import EXPECTED, Failure, about, describe, making
from superchunk.cli.formats.base import Plan as Wishes
from superchunk.cli.formats.places import BLOSC2, TARGETS, Place
from superchunk.cli.options import CODECS, parse_filters, parse_shape, parse_size, threads_option
from superchunk.cli.reading import as_schunk
from superchunk.cli.repair import steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from superchunk import SChunk
    from superchunk.cli.options import FilterChoice

__all__ = ["convert"]

_CHUNK_TYPESIZE: Final = 3
_CHUNK_SPECIAL: Final = 31
_CHUNK_VALUE: Final = 32
"""Places in a chunk's header (docs/format/chunk.md)."""
_NAN: Final = {4: struct.pack("<f", float("nan")), 8: struct.pack("<d", float("nan"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be made of what."""

    source: str
    target: str
    contiguous: bool
    """Whether the new frame is one file."""
    force: bool

    @classmethod
    def of(cls, source: str, target: str, *, contiguous: bool | None, force: bool) -> Plan:
        """Decide on the kind of the new frame, and look whether it may be made.

        Raises
        ------
        Failure
            There is something at the target and `force` is off, or making the frame there
            would change the source; or its directory is not there.
        UsageError
            One file was asked for, by a name that ends in a slash.

        """
        name = target.rstrip("/") or target
        if contiguous is None:
            contiguous = not (target != name or Path(name).is_dir()) and (Path(source).is_dir() or _is_old(source))
        elif contiguous and target != name:
            raise click.UsageError(f"--contiguous writes a file, but {target} can only be a directory")
        if not Path(source).exists():
            raise Failure(f"{source}: no such file or directory")
        final = Path(os.path.realpath(name))
        _check_apart(Path(os.path.realpath(source)), final, name)
        if not force and (Path(name).exists() or Path(name).is_symlink()):
            raise Failure(f"{name}: already exists; use --force to replace it")
        if not final.parent.is_dir():
            raise Failure(f"{name}: the directory {final.parent} does not exist")
        return cls(source=source, target=name, contiguous=contiguous, force=force)


def _is_old(source: str) -> bool:
    """Return whether there is the frame of an old writer."""
    return superchunk.identify(source).name == "old frame"


def _check_apart(source: Path, target: Path, name: str) -> None:
    """Raise if making `target` would change `source`."""
    if source == target or (target.exists() and source.samefile(target)):
        raise Failure(f"{name}: is the frame SOURCE")
    if source in target.parents:
        raise Failure(f"{name}: is inside the frame SOURCE")
    if target in source.parents:
        raise Failure(f"{name}: contains the frame SOURCE")


def _meaning(chunk: bytes) -> bytes | None:
    """Return the value that a special chunk repeats, nothing for zeros; None for a chunk with data.

    What is not initialised reads as zeros. A frame whose chunks differ in size writes some special
    chunks another way, so that their bytes differ and their meaning does not.
    """
    kind = chunk[_CHUNK_SPECIAL] >> 4 & 0x07
    if kind == SpecialValue.NOT_SPECIAL.value:
        return None
    if kind == SpecialValue.NAN.value:
        return _NAN.get(chunk[_CHUNK_TYPESIZE])
    value = chunk[_CHUNK_VALUE:] if kind == SpecialValue.VALUE.value else b""
    return value if any(value) else b""


def _same(one: bytes, other: bytes) -> bool:
    """Return whether two chunks are the same, or special and mean the same."""
    if one == other:
        return True
    if superchunk.get_cbuffer_sizes(one)[0] != superchunk.get_cbuffer_sizes(other)[0]:
        return False
    meaning = _meaning(one)
    return meaning is not None and meaning == _meaning(other)


def _raw(layers: superchunk.VlMeta, name: str) -> bytes | None:
    """Return a vlmetalayer's content, None if its chunk, which is moved as it is, cannot be decoded."""
    try:
        return layers.raw(name)
    except superchunk.SuperchunkError:
        return None


def compare(source: SChunk, target: SChunk, progress: Callable[[int, int], object]) -> None:
    """Raise unless `target` holds what `source` does.

    Raises
    ------
    Failure
        A chunk, a metalayer or a number differs; the message says which.

    """
    for what in ("nchunks", "nbytes", "typesize"):
        if getattr(source, what) != getattr(target, what):
            raise Failure(f"{what} differs: expected {getattr(source, what)}, found {getattr(target, what)}")
    if {name: source.meta.raw(name) for name in source.meta} != {name: target.meta.raw(name) for name in target.meta}:
        raise Failure("the metalayers differ")
    if [(name, _raw(source.vlmeta, name)) for name in sorted(source.vlmeta)] != [
        (name, _raw(target.vlmeta, name)) for name in sorted(target.vlmeta)
    ]:
        raise Failure("the vlmetalayers differ")
    for nchunk in range(source.nchunks):
        if not _same(source.get_chunk(nchunk), target.get_chunk(nchunk)):
            raise Failure(f"chunk {nchunk} differs")
        progress(nchunk + 1, source.nchunks)


def _verify(path: str) -> None:
    """Raise unless the frame's fingerprint and seals prove it."""
    status = superchunk.verify(path).status
    if status != "sound":
        raise Failure(f"verify reports {status}")


def _check(plan: Plan, schunk: SChunk, *, verify: bool) -> None:
    """Read the new frame back; remove it and raise if it is not what it should be.

    If something ends the command before that is known, it is removed too, unless it has replaced another one.
    """
    try:
        with (
            as_schunk(superchunk.open(plan.target)) as made,
            output.progress("comparing", schunk.nchunks, unit="chunks") as advance,
        ):
            compare(schunk, made, steps(advance))
        if verify:
            _verify(plan.target)
    except (*EXPECTED, Failure) as error:
        superchunk.remove_urlpath(plan.target)
        raise Failure(f"{plan.target}: {describe(error)}; the new frame is removed") from error
    except BaseException:
        if not plan.force:
            superchunk.remove_urlpath(plan.target)
        raise


def _stored(path: Path) -> int:
    """Return the bytes of a frame's file, or files."""
    return sum(part.stat().st_size for part in path.iterdir()) if path.is_dir() else path.stat().st_size


def _run(plan: Plan, *, verify: bool) -> dict[str, Any]:
    """Make the new frame, check it, and return what was done, fit for JSON."""
    with as_schunk(superchunk.open(plan.source, snapshot=True)) as schunk:
        with output.progress(plan.source, schunk.nchunks, unit="chunks") as advance:
            mode = "w" if plan.force else "a"
            made = schunk.copy(
                urlpath=plan.target, contiguous=plan.contiguous, mode=mode, sync="commit", progress=steps(advance)
            )
            made.close()
        _check(plan, schunk, verify=verify)
        return {
            "source": plan.source,
            "target": plan.target,
            "kind": "contiguous" if plan.contiguous else "sparse",
            "nchunks": schunk.nchunks,
            "nbytes": schunk.nbytes,
            "source_bytes": _stored(Path(plan.source)),
            "target_bytes": _stored(Path(plan.target)),
            "verified": verify,
        }


def _is_array(path: str) -> bool:
    """Return whether the frame at `path` holds an array; that of an old writer never does."""
    if _is_old(path):
        return False
    with as_schunk(superchunk.open(path)) as schunk:
        return any(layer in schunk.meta for layer in ("b2nd", "caterva"))


def _check_suffix(target: str) -> None:
    """Raise unless the name of a frame is one: with a suffix that says so, or with none."""
    suffix = Path(target).suffix
    if suffix and not target.endswith("/") and not Path(target).is_dir():
        raise click.UsageError(
            f"{target}: the suffix {suffix} is not known; expected {TARGETS}, or for a Blosc2 frame of another name "
            "--contiguous, --sparse or a slash at the end"
        )


def _stays(source: Place, target: Place) -> bool:
    """Return whether the new frame has the chunks of the old one: both are streams, or both are arrays."""
    if source.kind not in BLOSC2:
        return False
    if target.kind is None:
        return True
    return target.kind in BLOSC2 and _is_array(source.path) == (target.kind == "b2nd")


def _move(source: str, target: str, *, contiguous: bool | None, force: bool, verify: bool) -> dict[str, Any]:
    """Make the frame with the same chunks."""
    try:
        with making(target):
            return _run(Plan.of(source, target, contiguous=contiguous, force=force), verify=verify)
    except EXPECTED as error:
        raise about(source, error, target) from error


def _report(facts: dict[str, Any]) -> None:
    """Print what was made of an array."""
    done = ", read back and compared" if facts["verified"] else ""
    parts = f", chunks {tuple(facts['chunks'])}" if facts.get("chunks") else ""
    click.echo(
        f"{facts['target']}: {facts['dtype']}, shape {tuple(facts['shape'])}{parts}, {output.size(facts['nbytes'])} "
        f"in {output.size(facts['target_bytes'])}{done}"
    )
    for dropped in facts["left_out"].values():
        click.echo(f"superchunk: {facts['target']}: {dropped}", err=True)


@click.command(short_help="Convert an array to another format, or a frame between file and directory.")
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option(
    "--contiguous/--sparse",
    default=None,
    help="Write a Blosc2 frame as one file, or as a directory.  [default: one file; if chunks are copied unchanged, "
    "the opposite of SOURCE, and one file for an old frame]",
)
@click.option(
    "--codec", type=click.Choice(list(CODECS), case_sensitive=False), help="Codec that runs after the filters."
)
@click.option("--level", type=click.IntRange(0, 9), help="0 stores, 1 is fastest, 9 is smallest.")
@click.option("--filters", type=parse_filters, metavar="NAME,...", help="As for compress.")
@click.option("--chunks", type=parse_shape, metavar="N,N,...", help="Items of a chunk along each dimension.")
@click.option("--blocks", type=parse_shape, metavar="N,N,...", help="Items of a block along each dimension, for .b2nd.")
@click.option("--chunksize", type=parse_size, metavar="BYTES", help="Bytes of a chunk, for .b2frame.")
@click.option(
    "--zarr-format",
    type=click.Choice(["2", "3"]),
    help="For .zarr.  [default: 3, or 2 for dtypes that format 3 cannot store]",
)
@threads_option()
@click.option("-f", "--force", is_flag=True, help="Replace TARGET if it exists.")
@click.option("--verify", is_flag=True, help="Verify the new frame, or read the new array back and compare.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def convert(
    *,
    source: str,
    target: str,
    contiguous: bool | None,
    codec: str | None,
    level: int | None,
    filters: tuple[FilterChoice, ...] | None,
    chunks: tuple[int, ...] | None,
    blocks: tuple[int, ...] | None,
    chunksize: int | None,
    zarr_format: str | None,
    threads: int | None,
    force: bool,
    verify: bool,
    as_json: bool,
) -> None:
    """Convert SOURCE to the format given by TARGET's suffix. SOURCE does not change.

    Formats of arrays are .npy, .b2nd, .b2frame, .zarr and .h5:/DATASET. Items, shape, dtype, fill value and
    attributes are carried over, with a few megabytes in memory at a time.

    A frame that stays a frame (.b2nd to .b2nd, or a name without a suffix) keeps its chunks, which are not compressed
    again. One file becomes a directory (a sparse frame), and a directory one file. The frame of an old writer becomes
    a frame of today's format. A TARGET that ends in a slash, or is a directory, becomes a directory.
    """
    there, wanted = Place.of_source(source), Place.of_target(target)
    new = (codec, level, filters, chunks, blocks, chunksize) != (None,) * 6
    if not new and _stays(there, wanted):
        if wanted.kind is None and contiguous is None:
            _check_suffix(target)
        facts = _move(source, target, contiguous=contiguous, force=force, verify=verify)
        if as_json:
            output.print_json(facts)
            return
        click.echo(
            f"{facts['target']}: {facts['kind']}, {facts['nchunks']:,} chunks, {output.size(facts['target_bytes'])}"
            f" (from {output.size(facts['source_bytes'])}), {'verified' if verify else 'compared'}"
        )
        return
    if wanted.kind is None:
        raise click.UsageError(f"{target}: its name has no known suffix; expected {TARGETS}")
    if contiguous and wanted.folder:
        raise click.UsageError(f"--contiguous writes a file, but {target} can only be a directory")
    wishes = Wishes(
        shape=(),
        dtype=np.dtype("u1"),
        chunks=chunks,
        blocks=blocks,
        chunksize=chunksize,
        codec=codec,
        level=level,
        filters=filters,
        threads=threads,
        contiguous=not wanted.folder if contiguous is None else contiguous,
        zarr_format=None if zarr_format is None else int(zarr_format),
    )
    facts = convert_array(Job(source=there, target=wanted, wishes=wishes, force=force, verify=verify))
    if as_json:
        output.print_json(facts)
    else:
        _report(facts)
