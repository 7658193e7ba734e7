"""The interoperability corpus, for any test that wants to read it.

The corpus lies beside the checkout, in ``shared/corpus``, and has a README that says
what the fields of its manifests mean. Where it is absent, the tests that need it are
skipped and say so.

::

    @corpus.parametrize("chunk", "cframe")            # one test for each entry
    def test_entry_decodes(entry: corpus.Entry) -> None: ...

    @corpus.parametrize_hostile("chunk")              # malformed ones
    @corpus.parametrize_legacy()                      # frames of old writers

Reads the manifests only; what the files hold is for the tests to find out.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import superchunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from superchunk import SChunk

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2] / "shared" / "corpus"
"""Where the corpus is."""

MISSING = f"the corpus is not beside the checkout ({ROOT.parent.name}/{ROOT.name})"
"""Why a test is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A partial read and the hash of its bytes; items, per dimension for arrays."""

    start: Any
    stop: Any
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file or folder of the corpus."""

    path: Path
    """The file, or the folder of a sparse frame."""
    name: str
    """The same, relative to the corpus."""
    kind: str
    """``chunk``, ``cframe``, ``sframe`` or ``b2nd``."""
    nbytes: int
    """Bytes of everything decoded."""
    sha256: str | None
    """Hash of everything decoded, None where values are not initialised."""
    typesize: int
    features: frozenset[str]
    slices: tuple[Slice, ...] = ()
    chunk_nbytes: tuple[int, ...] | None = None
    """Decoded bytes of each chunk, where the manifest has them."""
    chunk_sha256: tuple[str, ...] | None = None
    """Hash of each decoded chunk, where the manifest has them."""
    undefined_chunks: frozenset[int] = frozenset()
    vlblocks: tuple[tuple[int, str], ...] = ()
    """Size and hash of each block with a length of its own."""
    offset: int = 0
    """Where the frame starts in the file, in bytes."""
    optional: bool = False
    """Whether a plugin is needed that a reader may leave out."""
    fields: Mapping[str, Any] = field(repr=False)
    """The entry as it stands in the manifest."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a sparse frame."""
        return "files" in self.fields

    def read(self) -> bytes:
        """Return the bytes of the file from `offset` on."""
        return self.path.read_bytes()[self.offset :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One malformed file of the corpus."""

    path: Path
    name: str
    kind: str
    group: str
    """What is wrong with it, in a word."""
    expect: str
    """``must raise``, ``may decode`` or ``must decode``."""
    why: str
    if_decodes: tuple[str, ...] | None
    """Hashes that a result may have; None: any."""
    claims: int
    """Bytes that it says it holds, where that is absurd, else 0."""
    fields: Mapping[str, Any] = field(repr=False)
    """The entry as it stands in the manifest."""


def as_schunk(opened: Any) -> SChunk:
    """Return what was opened as a list of chunks, also if it is an array."""
    schunk: SChunk = getattr(opened, "schunk", opened)
    return schunk


def sha256(data: bytes | memoryview) -> str:
    """Return the hash of `data` in the manifests' spelling."""
    return hashlib.sha256(data).hexdigest()


@functools.cache
def _manifest(folder: str) -> Any:
    """Return what the manifest in `folder` holds; no entries if there is no corpus."""
    path = ROOT / folder / "manifest.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"entries": []}


def entries(*kinds: str) -> list[Entry]:
    """Return the valid entries of these kinds; all kinds if none is named."""
    return [
        Entry(
            path=ROOT / raw["file"],
            name=raw["file"],
            kind=raw["kind"],
            nbytes=raw["nbytes"],
            sha256=raw["sha256"],
            typesize=raw["typesize"],
            features=frozenset(raw["features"]),
            slices=tuple(Slice(**piece) for piece in raw.get("slices", ())),
            chunk_nbytes=_tuple(raw.get("chunk_nbytes")),
            chunk_sha256=_tuple(raw.get("chunk_sha256")),
            undefined_chunks=frozenset(raw.get("undefined_chunks", ())),
            vlblocks=tuple((b["nbytes"], b["sha256"]) for b in _blocks(raw)),
            offset=raw.get("offset", 0),
            optional=bool(raw.get("optional", False)),
            fields=raw,
        )
        for raw in _manifest(".")["entries"]
        if not kinds or raw["kind"] in kinds
    ]


def hostile(*kinds: str) -> list[Hostile]:
    """Return the malformed entries of these kinds; all kinds if none is named."""
    return [
        Hostile(
            path=ROOT / "hostile" / raw["file"],
            name=raw["file"],
            kind=raw["kind"],
            group=raw["class"],
            expect=raw["expect"],
            why=raw["why"],
            if_decodes=_tuple(raw["if_decodes"]),
            claims=raw.get("claims", 0),
            fields=raw,
        )
        for raw in _manifest("hostile")["entries"]
        if not kinds or raw["kind"] in kinds
    ]


def legacy() -> list[Mapping[str, Any]]:
    """Return the entries of the frames of old writers, each with its `path` added."""
    manifest = _manifest("legacy")
    listed = manifest if isinstance(manifest, list) else manifest["entries"]
    return [{**raw, "path": ROOT / "legacy" / raw["file"]} for raw in listed]


def parametrize(*kinds: str) -> pytest.MarkDecorator:
    """Run a test once for each valid entry of these kinds, as its argument `entry`."""
    return _parametrize(entries(*kinds), lambda entry: entry.name)


def parametrize_hostile(*kinds: str) -> pytest.MarkDecorator:
    """Run a test once for each malformed entry of these kinds, as its argument `entry`."""
    return _parametrize(hostile(*kinds), lambda entry: entry.name)


def parametrize_legacy() -> pytest.MarkDecorator:
    """Run a test once for each frame of an old writer, as its argument `entry`."""
    return _parametrize(legacy(), lambda entry: str(entry["file"]))


def _parametrize(found: Iterable[T], name: Callable[[T], str]) -> pytest.MarkDecorator:
    """Return the mark for these entries, or one that skips if there are none."""
    params = [pytest.param(entry, id=name(entry)) for entry in found]
    skipped = pytest.param(None, id="no corpus", marks=pytest.mark.skip(MISSING))
    return pytest.mark.parametrize("entry", params or [skipped])


def _tuple(listed: list[Any] | None) -> tuple[Any, ...] | None:
    """Return a list as a tuple, and nothing as None."""
    return None if listed is None else tuple(listed)


def _blocks(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the blocks of a chunk with variable-length blocks; a frame only says it has some."""
    blocks = raw.get("vlblocks")
    return blocks if isinstance(blocks, list) else []


def stands_for_something_else(entry: Entry) -> bool:
    """Return whether the frame is one of a lazy expression, whose chunks are not its data."""
    return "legacy_lazy" in str(entry.path) and Path(entry.path).name == "expr.b2nd"


def opened(entry: Entry) -> SChunk:
    """Open an entry of the corpus as a super-chunk, whatever its chunks stand for."""
    if stands_for_something_else(entry):
        return superchunk.SChunk(urlpath=entry.path, mode="r")
    return as_schunk(superchunk.open(entry.path, offset=entry.offset))
