"""The other implementation, blosc2 4.14.1, as a peer for tests of interoperability.

Where it is absent the tests are skipped and say so; where it is another version its known
defects may be others, so they are skipped too. Wraps calls only; what to avoid is in
`drawn.for_oracle`, and which of its results are wrong is listed in docs/format/chunk.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from drawn import Params

VERSION = "4.14.1"

blosc2: Any = pytest.importorskip("blosc2", reason="the peer (blosc2) is not installed")
if blosc2.__version__ != VERSION:
    pytest.skip(f"the peer is {blosc2.__version__}, not {VERSION}", allow_module_level=True)


def cparams(way: Params) -> dict[str, Any]:
    """Return the keywords for a way to compress."""
    return {
        "codec": blosc2.Codec(way.codec),
        "clevel": way.clevel,
        "typesize": way.typesize,
        "blocksize": way.blocksize,
        "splitmode": blosc2.SplitMode(way.splitmode),
        "filters": [blosc2.Filter(ident) for ident in way.slots(0)],
        "filters_meta": [meta - 256 if meta > 127 else meta for meta in way.slots(1)],
        "use_dict": way.use_dict,
        "nthreads": way.nthreads,
    }


def compress(data: bytes, way: Params) -> bytes:
    """Return the chunk that the peer writes."""
    chunk: bytes = blosc2.compress2(data, **cparams(way))
    return chunk


def decompress(chunk: bytes, nthreads: int = 1) -> bytes:
    """Return what the peer reads."""
    plain: bytes = blosc2.decompress2(chunk, nthreads=nthreads)
    return plain
