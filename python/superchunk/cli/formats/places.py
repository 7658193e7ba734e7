"""The meaning of a name on the command line: which format, which file, which array in it.

The content identifies an existing file, the suffix a new one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import superchunk
from superchunk.cli.errors import Failure
from superchunk.cli.files import output_path
from superchunk.cli.formats import b2nd, frame, hdf5, npy, zarr

if TYPE_CHECKING:
    from superchunk.cli.formats.base import Plan, Source, Target

__all__ = ["BLOSC2", "TARGETS", "Place"]

BLOSC2: Final = frozenset({"b2nd", "b2frame"})
"""Formats that are Blosc2 frames."""
TARGETS: Final = ".npy, .b2nd, .b2frame, .zarr, .h5 or .hdf5 followed by :/DATASET"
_HDF5_NAME: Final = re.compile(r"(.+\.(?:h5|hdf5|hdf|he5|nc|nc4))(?::/*(.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An array's place."""

    name: str
    """As it stands on the command line."""
    kind: str | None
    """``npy``, ``b2nd``, ``b2frame``, ``zarr`` or ``hdf5``; None: its name tells nothing."""
    path: str
    """The file or directory."""
    dataset: str | None = None
    """The dataset in an HDF5 file, with its slash."""
    folder: bool = False
    """Whether a directory was asked for, by a slash at the end."""

    @classmethod
    def of_source(cls, name: str) -> Place:
        """Find out what is there.

        Raises
        ------
        Failure
            Nothing is.

        """
        path, dataset = name, None
        if not Path(name).exists() and ":" in name:
            before, _, after = name.rpartition(":")
            if Path(before).is_file():
                path, dataset = before, "/" + after.strip("/")
        there = Path(path)
        if not there.exists():
            raise Failure(f"{path}: No such file or directory")
        found = superchunk.identify(there).name
        if dataset is not None or found == "hdf5":
            return cls(name=name, kind="hdf5", path=path, dataset=dataset)
        if found == "npy" or (path.endswith(".npy") and not there.is_dir()):
            return cls(name=name, kind="npy", path=path)
        return cls(name=name, kind="zarr" if found == "zarr" else "b2nd", path=path)

    @classmethod
    def of_target(cls, name: str) -> Place:
        """Find out what is to be made.

        Raises
        ------
        UsageError
            It is empty, or a URL.

        """
        output_path(name)
        if (match := _HDF5_NAME.fullmatch(name)) is not None:
            dataset = None if not match[2] else "/" + match[2].strip("/")
            return cls(name=name, kind="hdf5", path=match[1], dataset=dataset)
        path = name.rstrip("/") or name
        kind = {".npy": "npy", ".b2nd": "b2nd", ".b2frame": "b2frame", ".zarr": "zarr"}.get(Path(path).suffix.lower())
        return cls(name=name, kind=kind, path=path, folder=path != name)

    def open(self) -> Source:
        """Open it for reading."""
        if self.kind == "npy":
            return npy.open_source(self.path)
        if self.kind == "zarr":
            return zarr.open_source(self.path)
        if self.kind == "hdf5":
            return hdf5.open_source(self.path, self.dataset)
        return b2nd.open_source(self.path)

    def create(self, aside: Path, plan: Plan, *, replace: bool) -> Target:
        """Make it, under another name.

        Parameters
        ----------
        aside
            Where; nothing is there, unless this is a dataset for a file that exists, of which a copy is.
        plan
            What.
        replace
            Whether a dataset of that name in the copy may go.

        """
        if self.kind == "npy":
            return npy.create(aside, plan)
        if self.kind == "zarr":
            return zarr.create(aside, plan)
        if self.kind == "hdf5":
            return hdf5.create(aside, self.dataset, plan, replace=replace)
        if self.kind == "b2frame":
            return frame.create(aside, plan)
        if self.kind == "b2nd":
            return b2nd.create(aside, plan)
        raise click.UsageError(f"{self.name}: its name has no known suffix; expected {TARGETS}")

    def moved_to(self, aside: Path) -> Place:
        """Return the place of the same array under another name."""
        return Place(name=self.name, kind=self.kind, path=str(aside), dataset=self.dataset or self._default())

    def _default(self) -> str | None:
        return hdf5.DEFAULT_DATASET if self.kind == "hdf5" else None
