"""Who is measured beside us, and how each does the same work: save, load, open, read, write, append.

Every peer works as its own documentation shows first: default chunks, all cores where it uses them. zarr and h5py get
the codec that `blosc2` and we default to, Zstandard at level 5 after a shuffle, in Blosc's container, and zarr plain
Zstandard as well. `numpy.save` does not compress. Packages are imported when they are used, for the jobs in
processes of their own that measure memory.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

CHUNKSIZE = 2**22
"""Bytes of a chunk, and of what is appended at a time."""


class Peer:
    """One way to keep a one-dimensional array in a file."""

    def __init__(self, name: str, module: str) -> None:
        """Say what it is called, and what is imported."""
        self.name = name
        self.module = module

    def save(self, data: NDArray[Any], path: Path) -> None:
        """Write an array in one call."""
        raise NotImplementedError

    def load(self, path: Path) -> NDArray[Any]:
        """Read it whole in one call, into a fresh array."""
        with self.opened(path) as handle:
            found: NDArray[Any] = handle[:]
            return found

    @contextmanager
    def opened(self, path: Path, mode: str = "r") -> Iterator[Any]:
        """Open what was saved; the handle gives items for a slice, as an array."""
        raise NotImplementedError

    @contextmanager
    def appending(self, path: Path, dtype: np.dtype[Any]) -> Iterator[Callable[[NDArray[Any]], Any]]:
        """Begin a file, and give a function that appends to it."""
        raise NotImplementedError


class Blosc2Like(Peer):
    """A package with the names of python-blosc2: ours and theirs. Arrays are saved as NDArray, frames are an SChunk."""

    def __init__(self, name: str) -> None:
        """Import the package of that name."""
        super().__init__(name, name)
        self.package: Any = __import__(name)

    def save(self, data: NDArray[Any], path: Path) -> None:
        """Write an array in one call."""
        close(self.package.asarray(data, urlpath=str(path), mode="w").schunk)

    def save_frame(self, data: NDArray[Any], path: Path) -> None:
        """Write items in one call, as a plain frame."""
        cparams = {"typesize": data.itemsize}
        close(self.package.SChunk(data=data, urlpath=str(path), mode="w", cparams=cparams))

    @contextmanager
    def opened(self, path: Path, mode: str = "r") -> Iterator[Any]:
        """Open an array or a frame; slices of a frame are bytes."""
        handle = self.package.open(str(path), mode=mode)
        yield handle
        close(handle)

    @contextmanager
    def appending(self, path: Path, dtype: np.dtype[Any]) -> Iterator[Callable[[NDArray[Any]], Any]]:
        """Begin a frame whose chunks are what is appended, pieces of `CHUNKSIZE`."""
        cparams = {"typesize": dtype.itemsize}
        frame = self.package.SChunk(urlpath=str(path), mode="w", chunksize=CHUNKSIZE, cparams=cparams)
        yield frame.append_data
        close(frame)


def close(array: Any) -> None:
    """Close an array or a frame; theirs is closed when the last reference goes."""
    schunk = getattr(array, "schunk", array)
    if hasattr(schunk, "close"):
        schunk.close()


class Zarr(Peer):
    """A zarr array of format 3 in a directory."""

    def __init__(self, codec: str) -> None:
        """Choose the codec: blosc or zstd."""
        super().__init__(f"zarr {codec}", "zarr")
        self.codec = codec

    def _create(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: Any) -> Any:
        import zarr
        from zarr.codecs import BloscCodec, ZstdCodec

        codec: Any = BloscCodec(cname="zstd", clevel=5, shuffle="shuffle", typesize=dtype.itemsize)
        if self.codec == "zstd":
            codec = ZstdCodec(level=5)
        return zarr.create_array(
            store=str(path), shape=shape, dtype=dtype, chunks=chunks, compressors=codec, overwrite=True
        )

    def save(self, data: NDArray[Any], path: Path) -> None:
        """Write an array in one call."""
        self._create(path, data.shape, data.dtype, "auto")[:] = data

    @contextmanager
    def opened(self, path: Path, mode: str = "r") -> Iterator[Any]:
        """Open it."""
        import zarr

        yield zarr.open_array(str(path), mode="r" if mode == "r" else "r+")

    @contextmanager
    def appending(self, path: Path, dtype: np.dtype[Any]) -> Iterator[Callable[[NDArray[Any]], Any]]:
        """Begin an array whose chunks are `CHUNKSIZE`."""
        yield self._create(path, (0,), dtype, (CHUNKSIZE // dtype.itemsize,)).append


class Hdf5(Peer):
    """A dataset of HDF5 with the filter Blosc2 of hdf5plugin."""

    def _create(self, file: Any, dtype: np.dtype[Any], **keywords: Any) -> Any:
        import hdf5plugin

        codec = hdf5plugin.Blosc2(cname="zstd", clevel=5, filters=hdf5plugin.Blosc2.SHUFFLE)
        return file.create_dataset("x", dtype=dtype, compression=codec, **keywords)

    def save(self, data: NDArray[Any], path: Path) -> None:
        """Write an array in one call."""
        import h5py

        with h5py.File(path, "w") as file:
            self._create(file, data.dtype, data=data, chunks=True)

    @contextmanager
    def opened(self, path: Path, mode: str = "r") -> Iterator[Any]:
        """Open file and dataset."""
        import h5py
        import hdf5plugin  # noqa: F401 - registers the filter

        with h5py.File(path, "r" if mode == "r" else "r+") as file:
            yield file["x"]

    @contextmanager
    def appending(self, path: Path, dtype: np.dtype[Any]) -> Iterator[Callable[[NDArray[Any]], Any]]:
        """Begin a dataset that grows, with chunks of `CHUNKSIZE`."""
        import h5py

        with h5py.File(path, "w") as file:
            found = self._create(file, dtype, shape=(0,), maxshape=(None,), chunks=(CHUNKSIZE // dtype.itemsize,))

            def append(values: NDArray[Any]) -> None:
                end = len(found)
                found.resize((end + len(values),))
                found[end:] = values

            yield append


class Numcodecs(Peer):
    """A file with what the codec Blosc of numcodecs makes of the whole array."""

    def save(self, data: NDArray[Any], path: Path) -> None:
        """Write an array in one call."""
        import numcodecs

        path.write_bytes(numcodecs.Blosc(cname="zstd", clevel=5, shuffle=1).encode(data))

    def load(self, path: Path) -> NDArray[Any]:
        """Read it whole in one call, as bytes."""
        import numcodecs

        return np.frombuffer(numcodecs.Blosc().decode(path.read_bytes()), "u1")


class Mapped:
    """A mapped array of which slices are read, and not only named."""

    def __init__(self, array: NDArray[Any]) -> None:
        """Take the mapped array."""
        self.array = array

    def __getitem__(self, key: slice) -> NDArray[Any]:
        """Read items."""
        return np.array(self.array[key])

    def __setitem__(self, key: slice, values: NDArray[Any]) -> None:
        """Write items."""
        self.array[key] = values


class Npy(Peer):
    """`numpy.save` and `numpy.load`: not compressed."""

    def save(self, data: NDArray[Any], path: Path) -> None:
        """Write an array in one call."""
        with path.open("wb") as file:
            np.save(file, data)

    def load(self, path: Path) -> NDArray[Any]:
        """Read it whole in one call."""
        found: NDArray[Any] = np.load(path)
        return found

    @contextmanager
    def opened(self, path: Path, mode: str = "r") -> Iterator[Any]:
        """Map the file; slices are copied out of it, as the others' are."""
        yield Mapped(np.load(path, mmap_mode="r" if mode == "r" else "r+"))

    @contextmanager
    def appending(self, path: Path, dtype: np.dtype[Any]) -> Iterator[Callable[[NDArray[Any]], Any]]:  # noqa: ARG002
        """Begin a file of plain bytes."""
        with path.open("wb", buffering=0) as file:
            yield file.write


MAKERS: dict[str, Callable[[], Peer]] = {
    "superchunk": lambda: Blosc2Like("superchunk"),
    "blosc2": lambda: Blosc2Like("blosc2"),
    "zarr blosc": lambda: Zarr("blosc"),
    "zarr zstd": lambda: Zarr("zstd"),
    "h5py blosc2": lambda: Hdf5("h5py blosc2", "h5py"),
    "numcodecs": lambda: Numcodecs("numcodecs", "numcodecs"),
    "numpy": lambda: Npy("numpy", "numpy"),
}
