"""The index of a beta's frame: as today, with fewer special chunks.

The development state of 2021 had zeros and NaN, the releases before it none at all. Entries
are checked when they are decoded, so that the index stays as lazy as any.

Source: docs/format/legacy.md, "Chunks and index".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from superchunk._format.frame_index import Index
from superchunk.exceptions import FormatError

if TYPE_CHECKING:
    from array import array

    from superchunk._engine import ChunkInfo, Source
    from superchunk._format.legacy_header import LegacyHeader

__all__ = ["LegacyIndex"]


class LegacyIndex(Index):
    """The entries of a beta's frame, where fewer special chunks are possible than today.

    What is put into the index later is not the file's, and not read.
    """

    __slots__ = ("codes",)

    codes: tuple[int, ...]
    """Top bytes of the entries that stand for special chunks."""

    @classmethod
    def of_header(cls, source: Source, info: ChunkInfo, header: LegacyHeader) -> Self:
        """Return the index that `header` tells of, as `from_chunk` does.

        Raises
        ------
        FormatError
            The typesize is not 8, the size does not fit, or all chunks are of an unknown
            special value.

        """
        index = cls.from_chunk(source, info, nchunks=header.nchunks, at=header.index_at)
        index.codes = header.special_codes
        if index.repeated_entry is not None:
            index.check_entry(index.repeated_entry, 0)
        return index

    def copy(self) -> Index:
        """Return an index of its own with the same entries, as lazy as this one."""
        copied = LegacyIndex()
        whole = self.entries
        copied.entries = None if whole is None else whole[:]
        copied.length, copied._repeated = self.length, self._repeated
        copied._source, copied._at, copied.codes = self._source, self._at, self.codes
        return copied

    def _decode(self, source: Source, start: int, stop: int) -> array[int]:
        entries = super()._decode(source, start, stop)
        if entries and min(entries) < 0:
            for nchunk, entry in enumerate(entries, start):
                self.check_entry(entry, nchunk)
        return entries

    def check_entry(self, entry: int, nchunk: int) -> None:
        """Raise a FormatError for the entry of a special chunk that this frame cannot have."""
        code = entry >> 56 & 0xFF
        if entry < 0 and code not in self.codes:
            raise FormatError(
                f"index entry {nchunk}, top byte",
                at=8 * nchunk + 7,
                expected=" or ".join(f"0x{known:02X}" for known in self.codes) or "no special chunks in this frame",
                found=f"0x{code:02X}",
            )
