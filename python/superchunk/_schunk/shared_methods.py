"""What a SChunk and an NDArray share as objects over a handle: they tell what they are, and end with a block."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Self

from superchunk._display.info import InfoReport

if TYPE_CHECKING:
    from types import TracebackType

    from superchunk._schunk.handle import Handle

__all__ = ["ContextManaged", "InfoMixin"]


class InfoMixin:
    """Something that tells what it is."""

    __slots__ = ()

    @property
    @abstractmethod
    def info_items(self) -> list[tuple[str, object]]:
        """The pairs of name and value that `info` shows."""

    @property
    def info(self) -> InfoReport:
        """A report that prints as lines, and as a table in a notebook."""
        return InfoReport(lambda: self.info_items)


class ContextManaged(InfoMixin):
    """An object over a handle."""

    __slots__ = ()

    if TYPE_CHECKING:
        _handle: Handle

    @abstractmethod
    def close(self) -> None:
        """Write what is pending and close the file."""

    def __enter__(self) -> Self:
        """Return the object; leaving the block closes it."""
        _ = self._handle.store
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; if writing fails, it stays open, as for `close`."""
        self.close()
