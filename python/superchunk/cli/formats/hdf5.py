"""Datasets in HDF5 files, through the package h5py, and hdf5plugin for codecs that HDF5 does not bring.

A dataset is named behind the file: ``weather.h5:/europe/wind``. What is compressed with zlib is what every HDF5 reads;
other codecs are put into Blosc2's filter.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from superchunk.cli.errors import Failure
from superchunk.cli.formats.attributes import plain
from superchunk.cli.formats.base import FOREIGN, Source, Target, blosc_shuffle, fill_bytes, require, sensible_chunks
from superchunk.cli.formats.hdf5_file import FileThatGivesUp
from superchunk.cli.formats.hdf5_scales import dimensions_of, is_bare_dimension, is_bookkeeping, name_dimensions
from superchunk.cli.signals import undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from superchunk.cli.formats.base import Box, Plan

__all__ = ["DEFAULT_DATASET", "Hdf5Source", "Hdf5Target", "create", "open_source"]

DEFAULT_DATASET: Final = "/data"
_LISTED: Final = 12
"""Datasets that an error message names."""


def _plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype without the notes that h5py attaches to it."""
    if dtype.metadata is not None and dtype.fields is None and dtype.subdtype is None:
        return np.dtype(dtype.str)
    return dtype


def _datasets(file: Any) -> list[str]:
    """Return the names of all datasets of a file."""
    h5py = importlib.import_module("h5py")
    names: list[str] = []

    def visit(name: str, found: object) -> None:
        if isinstance(found, h5py.Dataset) and not is_bare_dimension(found):
            names.append("/" + name)

    file.visititems(visit)
    return names


class Hdf5Source(Source):
    """A dataset."""

    def __init__(self, path: str, dataset: str | None) -> None:
        h5py = require("h5py", "hdf5", f"{path}: HDF5")
        self._file: Any = h5py.File(path, "r")
        try:
            self._take(path, self._dataset(path, dataset))
        except BaseException:
            self._file.close()
            raise

    def _dataset(self, path: str, name: str | None) -> Any:
        """Return the dataset of that name, or the only one."""
        h5py = importlib.import_module("h5py")
        if name is not None:
            found = self._file.get(name)
            if isinstance(found, h5py.Dataset):
                return found
        names = _datasets(self._file)
        if name is None and len(names) == 1:
            return self._file[names[0]]
        what = "expected a dataset after a colon" if name is None else f"there is no dataset {name}"
        there = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        raise Failure(f"{path}: {what}; there are: {there or 'none'}")

    def _take(self, path: str, dataset: Any) -> None:
        where = f"{path}:{dataset.name}"
        if dataset.shape is None:
            raise Failure(f"{where}: is empty and has no shape")
        if dataset.dtype.hasobject:
            raise Failure(f"{where}: has strings of different lengths, or references; expected items of one size")
        _check_filters(where, dataset)
        self._found = dataset
        self.shape, self.dtype = tuple(dataset.shape), _plain_dtype(dataset.dtype)
        self.chunks = None if dataset.chunks is None else tuple(dataset.chunks)
        self.fill, self._fill_is_known = None, False
        with contextlib.suppress(*FOREIGN):
            raw = fill_bytes(dataset.fillvalue, self.dtype)
            self._fill_is_known = raw is not None
            self.fill = raw if raw is not None and any(raw) else None
        self.dimensions = dimensions_of(dataset)
        names = [name for name in dataset.attrs if not is_bookkeeping(dataset, name)]
        netcdf = "_NCProperties" in self._file.attrs
        self.attributes = {name: _read_attribute(dataset, name, single=netcdf) for name in names}

    def read(self, box: Box) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the items of a box, of its shape."""
        values = np.asarray(self._found[box])
        return values if values.dtype == self.dtype else values.view(self.dtype)

    def visit_written(self, visit: Callable[[tuple[int, ...]], object]) -> bool:
        """Tell the first item of each chunk that has room in the file."""
        found = self._found
        if not self._fill_is_known or found.is_virtual or found.external:
            return False
        if self.chunks is None:
            return not found.id.get_storage_size()

        def tell(chunk: Any) -> None:
            visit(tuple(chunk.chunk_offset))

        found.id.chunk_iter(tell)
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _check_filters(where: str, dataset: Any) -> None:
    """Raise unless all filters of a dataset are there, with hdf5plugin's help if need be."""
    h5z = importlib.import_module("h5py.h5z")
    created = dataset.id.get_create_plist()
    steps = [created.get_filter(n) for n in range(created.get_nfilters())]
    if all(h5z.filter_avail(step[0]) for step in steps):
        return
    with contextlib.suppress(ImportError):
        importlib.import_module("hdf5plugin")
    for step in steps:
        if not h5z.filter_avail(step[0]):
            name = step[3].decode("utf-8", "replace") if isinstance(step[3], bytes) else step[3]
            raise Failure(
                f"{where}: needs the HDF5 filter {step[0]} ({name}); "
                'pip install "superchunk[hdf5]" installs the common filters'
            )


def _read_attribute(dataset: Any, name: str, *, single: bool) -> object:
    """Return an attribute's value; of one that cannot be read the error, which no format can keep.

    With `single` a list of one value is that value: NetCDF writes all numbers so.
    """
    h5py = importlib.import_module("h5py")
    try:
        value = dataset.attrs[name]
    except FOREIGN as error:
        return error
    if isinstance(value, h5py.Empty):
        return None
    if single and isinstance(value, np.ndarray) and value.shape == (1,):
        value = value[0]
    return _decoded(value)


def _decoded(value: Any) -> object:
    """Return text of a fixed length, which h5py gives as bytes, as text; what is no UTF-8 stays what it is."""
    try:
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, np.ndarray) and value.dtype.kind == "S":
            return np.char.decode(value, "utf-8").tolist()
    except UnicodeDecodeError:
        pass
    return bytes(value) if isinstance(value, bytes) else value


@dataclass(slots=True, kw_only=True)
class Hdf5Target(Target):
    """A new dataset."""

    file: Any
    beneath: FileThatGivesUp
    dataset: Any
    opaque: np.dtype[Any] | None
    """What times are stored as, for which HDF5 has no type."""

    def write(self, box: Box, values: np.ndarray[Any, np.dtype[Any]]) -> None:
        """Write the items of a box."""
        with undisturbed():
            self.dataset[box] = values if self.opaque is None else values.astype(self.opaque)
        self.beneath.check()

    def set_attribute(self, name: str, value: object) -> None:
        """Keep an attribute."""
        kept = _attribute(value)
        with undisturbed():
            self.dataset.attrs[name] = kept

    def close(self) -> None:
        """Close the file."""
        with undisturbed():
            self.file.close()
            self.beneath.close()
        self.beneath.check()


def _attribute(value: object) -> object:
    """Return a value as h5py takes it."""
    h5py = importlib.import_module("h5py")
    kept = plain(value)
    if kept is None:
        return h5py.Empty("f8")
    if isinstance(kept, bytes):
        return np.void(kept)
    if isinstance(kept, dict):
        raise TypeError("HDF5 attributes cannot hold maps")
    return _uniform(kept) if isinstance(kept, list) else kept


def _uniform(values: list[Any]) -> object:
    """Return a list of numbers as an array, one of text as it is."""
    if values and all(isinstance(value, str) for value in values):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "biufc" or len({type(value) for value in values}) > 1:
        raise TypeError("HDF5 attributes cannot hold lists of values of different types")
    return array


def open_source(place: str, dataset: str | None) -> Hdf5Source:
    """Open a dataset of the file at `place`; None for the only one."""
    return Hdf5Source(place, dataset)


def create(place: Path, dataset: str | None, plan: Plan, *, replace: bool = False) -> Hdf5Target:
    """Make a dataset in the file at `place`, which is made if it does not exist.

    Raises
    ------
    Failure
        There is one of that name and `replace` is off, or something else has the name, or HDF5 has no such dtype.

    """
    h5py = require("h5py", "hdf5", f"{place.name}: HDF5")
    stored, opaque = plan.dtype, None
    if plan.dtype.kind in "mM":
        stored = opaque = h5py.opaque_dtype(plan.dtype)
    elif plan.dtype.kind == "U":
        raise Failure(f"HDF5 has no type for text of four bytes a character, as in the dtype {plan.dtype}")
    target: Hdf5Target | None = None
    try:
        with undisturbed():
            target = _create(place, dataset or DEFAULT_DATASET, plan, stored, opaque, replace=replace)
    except BaseException:  # a signal that waited
        if target is not None:
            target.close()
        raise
    return target


def _create(
    place: Path,
    name: str,
    plan: Plan,
    stored: np.dtype[Any],
    opaque: np.dtype[Any] | None,
    *,
    replace: bool,
) -> Hdf5Target:
    h5py = importlib.import_module("h5py")
    with contextlib.ExitStack() as opened:
        beneath = opened.enter_context(FileThatGivesUp(place))
        file = opened.enter_context(h5py.File(beneath, "r+" if place.stat().st_size else "w"))
        _make_room(file, name, replace=replace)
        details: dict[str, Any] = {}
        chunks = None
        if plan.shape and 0 not in plan.shape:
            chunks = sensible_chunks(plan)
            details = {"chunks": chunks, **_compression(plan)}
        elif plan.shape:
            details = {"maxshape": plan.shape, "chunks": None}
        if plan.fill is not None and opaque is None:
            details["fillvalue"] = np.frombuffer(plan.fill, plan.dtype)[0]
        try:
            made = file.create_dataset(name, plan.shape, stored, **details)
        except TypeError as error:
            raise Failure(f"HDF5 has no type for the dtype {plan.dtype} ({error})") from error
        name_dimensions(made, plan.dimensions)
        opened.pop_all()
    target = Hdf5Target(chunks=chunks or plan.shape or None, file=file, beneath=beneath, dataset=made, opaque=opaque)
    target.begins_filled = plan.fill is None or opaque is None
    target.resolved = {"dataset": name, "chunks": None if chunks is None else list(chunks)}
    return target


def _make_room(file: Any, name: str, *, replace: bool) -> None:
    h5py = importlib.import_module("h5py")
    if name not in file:
        return
    if not isinstance(file[name], h5py.Dataset):
        raise Failure(f"{name}: is a group in that file")
    if not replace:
        raise Failure(f"{name}: already exists in that file; use --force to replace it")
    del file[name]


def _compression(plan: Plan) -> dict[str, Any]:
    """Return what h5py wants to know: zlib by itself, the other codecs in Blosc2's filter."""
    codec = (plan.codec or "zlib").lower()
    level = 5 if plan.level is None else plan.level
    shuffle = blosc_shuffle(plan, "HDF5")
    if codec == "zlib" and shuffle != "bitshuffle":
        return {"compression": "gzip", "compression_opts": level, "shuffle": shuffle == "shuffle"}
    plugin = require("hdf5plugin", "hdf5", f"HDF5 with the codec {codec}")
    filters = {
        "noshuffle": plugin.Blosc2.NOFILTER,
        "shuffle": plugin.Blosc2.SHUFFLE,
        "bitshuffle": plugin.Blosc2.BITSHUFFLE,
    }
    return dict(plugin.Blosc2(cname=codec, clevel=level, filters=filters[shuffle]))
