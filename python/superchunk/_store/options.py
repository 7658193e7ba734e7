"""How a container is open: one object, which its handle, the store beneath it and whoever opens it again share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing import TypeAlias

    from superchunk.params import DeserializeMode, SyncLevel

    Deserialize: TypeAlias = Literal["safe", "full"] | DeserializeMode
    """Which extension values metadata may hold."""

__all__ = ["Deserialize", "OpenKeywords", "OpenOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """What was asked for when a container was opened or made; it holds until the handle is closed."""

    mode: str = "a"
    """``"r"``, ``"a"`` or ``"w"``; that of the mmap mode, if there is one."""
    offset: int = 0
    """Where the frame starts in its file, in bytes."""
    mmap_mode: str | None = None
    """The mmap mode."""
    initial_mapping_size: int | None = None
    """Bytes, as the user gave them; nothing is mapped."""
    locking: bool = False
    """Whether it takes part in C-Blosc2's lock protocol, asked for here or by ``BLOSC_LOCKING``."""
    sync: SyncLevel = "explicit"
    """When to wait for the disk."""
    seal: bool = True
    """Whether seals, fingerprint and commit records are written."""
    snapshot: bool = False
    """Stay at the state that was found."""
    recover: bool = False
    """Take the newest intact commit, if the present state is damaged."""
    verify: str | None = None
    """``"read"``: chunks that are read whole are compared with their seals."""
    compact_above: float | None = None
    """Compact when closing, if more than this share of the bytes is dead."""
    deserialize: Deserialize = "safe"
    """Which extension values metadata may hold."""


class OpenKeywords(TypedDict, total=False):
    """The fields of `OpenOptions` besides the mode, as keyword arguments."""

    offset: int
    mmap_mode: str | None
    initial_mapping_size: int | None
    locking: bool
    sync: SyncLevel
    seal: bool
    snapshot: bool
    recover: bool
    verify: str | None
    compact_above: float | None
    deserialize: Deserialize
