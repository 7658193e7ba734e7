"""Keeping an array an array when its frame is repaired.

The result can be opened as an array only if the layer goes together with the chunks. In this order: the layer as it is;
as an older commit had it; as it is, with missing chunks as lost ones; none, which leaves a super-chunk of all chunks.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from superchunk._integrity.array_layer import layer_name, true_layout
from superchunk._integrity.budget import most_entries
from superchunk._integrity.recovered_chunks import RecoveredChunk
from superchunk._store.older_commits import commits
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from superchunk._format.b2nd import ArrayLayout
    from superchunk._integrity.inspect_frame import Bytes
    from superchunk._integrity.repair_plan import Plan

__all__ = ["older_layers", "settle_array"]

_MOST_COMMITS: Final = 64


def older_layers(place: Bytes, meta: dict[str, bytes]) -> list[bytes]:
    """Return how the layer of an array reads in the commits that can still be read, newest first."""
    name = layer_name(meta)
    if name is None:
        return []
    found: list[bytes] = []
    older = commits(place.read, place.size, place.source, sparse=place.sparse)
    for _, commit in zip(range(_MOST_COMMITS), older, strict=False):
        if name in commit.layers:
            at, length = commit.layers[name]
            found.append(commit.raw_header[at : at + length])
    return found


def settle_array(plan: Plan) -> None:
    """See to it that the layer of an array, if there is one, and the chunks of a plan go together."""
    name = layer_name(plan.meta)
    if name is None:
        return
    nchunks = len(plan.pieces) if plan.fill is None else -(-plan.fill[1] // max(plan.chunksize, 1))
    regular = plan.fill is not None or bool((plan.pieces.sizes == plan.chunksize).all())
    present = plan.meta[name]
    problem = ""
    for content in (present, *plan.older_layers):
        try:
            layout = _layout(plan, content)
            if layout.nchunks > nchunks and regular and plan.fill is None and _is_claimed(plan, layout):
                lost = RecoveredChunk(None, 0, plan.chunksize, "lost", -1, "no bytes of it were found")
                plan.pieces.extend(lost, layout.nchunks - nchunks)
                nchunks = layout.nchunks
            if regular or not nchunks:
                layout.check(typesize=plan.settings.typesize, chunksize=0, nchunks=nchunks)
                plan.meta[name] = content
                if content != present:
                    plan.notes.append(f"metalayer {name!r} as an older commit had it: {problem}")
                return
            problem = problem or "its chunks are not all of one size"
        except FormatError as error:
            problem = problem or str(error)
    del plan.meta[name]
    plan.notes.append(f"metalayer {name!r} is left out, so that this is no array: {problem}")


def _layout(plan: Plan, content: bytes) -> ArrayLayout:
    return true_layout(content, typesize=plan.settings.typesize, chunksize=plan.chunksize, nchunks=None)


def _is_claimed(plan: Plan, layout: ArrayLayout) -> bool:
    """Return whether the header says, too, that there are as many chunks as the layer says."""
    return layout.nchunks <= most_entries(plan.size) and plan.nbytes == layout.nchunks * plan.chunksize
