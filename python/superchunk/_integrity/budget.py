"""The memory budget of a file that is checked or repaired: work and memory are bounded by the size of the file.

A chunk of 40 bytes may claim to hold 2 GB. What the budget refuses is not read, and is not charged: it is kept
as it is and said to be unproven, never lost.

Source: docs/format/integrity.md, "Recovery".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

__all__ = ["Budget", "most_entries"]


@dataclass(slots=True)
class Budget:
    """Bytes that may still be worked on."""

    decode: int
    """To decode."""
    read: int
    """To read and hash."""
    unit: int
    """Of the largest block that is decoded."""

    @classmethod
    def of(cls, size: int) -> Budget:
        """Return the budget of a file of `size` bytes."""
        return cls(decode=256 * size + 4 * 2**30, read=64 * size + 2**26, unit=16 * size + 2**26)

    @classmethod
    def unlimited(cls) -> Self:
        """Return a budget that refuses nothing."""
        return cls(2**62, 2**62, 2**62)

    def may_decode(self, nbytes: int) -> bool:
        """Return whether `nbytes` more may be decoded, and count them if so."""
        if nbytes > self.decode:
            return False
        self.decode -= nbytes
        return True

    def may_read(self, nbytes: int) -> bool:
        """Return whether `nbytes` more may be read, and count them if so."""
        if nbytes > self.read:
            return False
        self.read -= nbytes
        return True


def most_entries(size: int) -> int:
    """Return how many entries an index chunk of `size` bytes may have, unless they are all the same.

    Writers get 8 bytes of entries, eight streams, into a 255th at best.
    """
    return 2**20 + 64 * size
