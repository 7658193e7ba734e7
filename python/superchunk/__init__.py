"""Blosc2 storage: chunks, super-chunks, contiguous frames and metalayers.

The names are those that users of python-blosc2 know; `docs/differences.md` lists
where they do something else. Importing the package loads none of it: a name is loaded, with what it
needs, when it is first asked for.

Examples
--------
>>> import superchunk
>>> s = superchunk.SChunk(data=b"0123456789" * 1000, chunksize=1000)
>>> s[5:12]
b'5678901'

"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from superchunk._api.as_blosc2 import InstalledAlias, install_as_blosc2
    from superchunk._api.dtype_names import (
        DEFAULT_COMPLEX,
        DEFAULT_FLOAT,
        DEFAULT_INDEX,
        DEFAULT_INT,
        bool_,
        bytes_,
        complex64,
        complex128,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        object_,
        str_,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from superchunk._api.opening import from_cframe, load, ndarray_from_cframe, open, schunk_from_cframe
    from superchunk._array.arange import arange, eye, linspace
    from superchunk._array.asarray import array, asarray, astype, copy
    from superchunk._array.chunkwise import ChunkInfoNDArray
    from superchunk._array.creation import (
        empty,
        empty_like,
        frombuffer,
        fromiter,
        full,
        full_like,
        nans,
        ones,
        ones_like,
        uninit,
        zeros,
        zeros_like,
    )
    from superchunk._array.fields import NDField
    from superchunk._array.from_pieces import from_pieces
    from superchunk._array.functions import (
        expand_dims,
        matrix_transpose,
        permute_dims,
        reshape,
        save,
        squeeze,
        take,
        take_along_axis,
        transpose,
    )
    from superchunk._array.get_slice_nchunks import get_slice_nchunks
    from superchunk._array.joining import concat, concatenate, stack
    from superchunk._array.ndarray import NDArray, OIndex
    from superchunk._array.partition_report import (
        PartitionReport,
        are_partitions_aligned,
        are_partitions_behaved,
        compute_chunks_blocks,
        explain_partition,
    )
    from superchunk._codec.block_functions import postfilter_funcs, prefilter_funcs
    from superchunk._codec.cpu_caches import print_versions
    from superchunk._codec.plugins import register_codec, register_filter, ucodecs_registry, ufilters_registry
    from superchunk._display.chunk_map import MapCell, chunk_map
    from superchunk._integrity.repair import RepairedChunk, RepairReport, repair
    from superchunk._integrity.report import ChunkReport, PartReport, VerifyReport
    from superchunk._integrity.verify import verify
    from superchunk._packed.frames import (
        load_array,
        load_tensor,
        pack_array2,
        pack_tensor,
        save_array,
        save_tensor,
        unpack_array2,
        unpack_tensor,
    )
    from superchunk._packed.pickles import pack, pack_array, unpack, unpack_array
    from superchunk._schunk.opening import remove_urlpath
    from superchunk._schunk.stage_chunk import StagedChunk, stage_chunk
    from superchunk._store.path_target import PathKind, identify
    from superchunk._version import VERSION_DATE, VERSION_STRING, __version__, blosclib_version
    from superchunk.core import (
        clib_info,
        compress,
        compress2,
        compress_blosc1,
        compressor_list,
        decompress,
        decompress2,
        detect_number_of_cores,
        free_resources,
        get_blocksize,
        get_cbuffer_sizes,
        get_clib,
        get_compressor,
        get_cpu_info,
        set_block_cache,
        set_blocksize,
        set_compressor,
        set_kept_memory,
        set_releasegil,
    )
    from superchunk.exceptions import (
        ArgumentError,
        ChunkIndexError,
        ClosedError,
        FormatError,
        KeywordError,
        LockedError,
        MetalayerError,
        MetalayerKeyError,
        MetalayerValueError,
        NewerFormatError,
        ReadOnlyError,
        StorageError,
        SuperchunkError,
        TruncatedError,
        UnsafeDeserializationError,
        UnsupportedError,
    )
    from superchunk.meta import Meta, VlMeta
    from superchunk.ndarray import Operand
    from superchunk.params import (
        DEFINED_CODECS_STOP,
        EXTENDED_HEADER_LENGTH,
        GLOBAL_REGISTERED_CODECS_STOP,
        MAX_BLOCKSIZE,
        MAX_BUFFERSIZE,
        MAX_DIM,
        MAX_OVERHEAD,
        MAX_TYPESIZE,
        MIN_HEADER_LENGTH,
        USER_REGISTERED_CODECS_STOP,
        Codec,
        CParams,
        DeserializeMode,
        DParams,
        Filter,
        SpecialValue,
        SplitMode,
        Storage,
        Tuner,
        cparams_dflts,
        dparams_dflts,
        ncores,
        set_nthreads,
        storage_dflts,
    )
    from superchunk.schunk import ChunkInfo, SChunk

    nthreads: int
    cpu_info: dict[str, int]

IS_WASM: Final = sys.platform == "emscripten"
"""Whether this is WebAssembly."""

_PLACES: Final = {
    "_api.as_blosc2": "InstalledAlias install_as_blosc2",
    "_codec.block_functions": "postfilter_funcs prefilter_funcs",
    "_display.chunk_map": "MapCell chunk_map",
    "_codec.cpu_caches": "print_versions",
    "_api.dtype_names": """
        DEFAULT_COMPLEX DEFAULT_FLOAT DEFAULT_INDEX DEFAULT_INT bool_ bytes_ complex64 complex128 float16 float32
        float64 int8 int16 int32 int64 object_ str_ uint8 uint16 uint32 uint64
    """,
    "_api.opening": "from_cframe load ndarray_from_cframe open schunk_from_cframe",
    "_schunk.opening": "remove_urlpath",
    "_integrity.repair": "RepairReport RepairedChunk repair",
    "_integrity.report": "ChunkReport PartReport VerifyReport",
    "_schunk.stage_chunk": "StagedChunk stage_chunk",
    "_codec.plugins": "register_codec register_filter ucodecs_registry ufilters_registry",
    "_integrity.verify": "verify",
    "_version": "VERSION_DATE VERSION_STRING __version__ blosclib_version",
    "_array.get_slice_nchunks": "get_slice_nchunks",
    "_array.chunkwise": "ChunkInfoNDArray",
    "_array.asarray": "array asarray astype copy",
    "_array.creation": """
        empty empty_like frombuffer fromiter full full_like nans ones ones_like uninit zeros zeros_like
    """,
    "_array.fields": "NDField",
    "_array.functions": """
        expand_dims matrix_transpose permute_dims reshape save squeeze take take_along_axis transpose
    """,
    "_array.joining": "concat concatenate stack",
    "_array.ndarray": "NDArray OIndex",
    "_array.partition_report": """
        PartitionReport are_partitions_aligned are_partitions_behaved compute_chunks_blocks explain_partition
    """,
    "_array.from_pieces": "from_pieces",
    "_array.arange": "arange eye linspace",
    "core": """
        clib_info compress compress2 compress_blosc1 compressor_list decompress decompress2
        detect_number_of_cores free_resources get_blocksize get_cbuffer_sizes get_clib get_compressor
        get_cpu_info set_block_cache set_blocksize set_compressor set_kept_memory set_releasegil
    """,
    "exceptions": """
        ArgumentError ChunkIndexError ClosedError FormatError KeywordError LockedError MetalayerError
        MetalayerKeyError MetalayerValueError NewerFormatError ReadOnlyError StorageError SuperchunkError
        TruncatedError UnsafeDeserializationError UnsupportedError
    """,
    "meta": "Meta VlMeta",
    "ndarray": "Operand",
    "_packed.frames": """
        load_array load_tensor pack_array2 pack_tensor save_array save_tensor unpack_array2 unpack_tensor
    """,
    "_packed.pickles": "pack pack_array unpack unpack_array",
    "params": """
        CParams Codec DEFINED_CODECS_STOP DParams DeserializeMode EXTENDED_HEADER_LENGTH Filter
        GLOBAL_REGISTERED_CODECS_STOP
        MAX_BLOCKSIZE MAX_BUFFERSIZE MAX_DIM MAX_OVERHEAD MAX_TYPESIZE MIN_HEADER_LENGTH SpecialValue
        SplitMode Storage Tuner USER_REGISTERED_CODECS_STOP cparams_dflts dparams_dflts ncores set_nthreads
        storage_dflts
    """,
    "schunk": "ChunkInfo SChunk",
    "_store.path_target": "PathKind identify",
}
"""Where the names are, by module."""

_PLACE_OF: Final = {name: module for module, names in _PLACES.items() for name in names.split()}

_MODULES: Final = frozenset({"core", "exceptions", "meta", "ndarray", "params", "schunk"})
"""Modules that can be had as attributes, imported or not, as python-blosc2's can."""

__all__ = [
    "DEFAULT_COMPLEX",
    "DEFAULT_FLOAT",
    "DEFAULT_INDEX",
    "DEFAULT_INT",
    "DEFINED_CODECS_STOP",
    "EXTENDED_HEADER_LENGTH",
    "GLOBAL_REGISTERED_CODECS_STOP",
    "IS_WASM",
    "MAX_BLOCKSIZE",
    "MAX_BUFFERSIZE",
    "MAX_DIM",
    "MAX_OVERHEAD",
    "MAX_TYPESIZE",
    "MIN_HEADER_LENGTH",
    "USER_REGISTERED_CODECS_STOP",
    "VERSION_DATE",
    "VERSION_STRING",
    "ArgumentError",
    "CParams",
    "ChunkIndexError",
    "ChunkInfo",
    "ChunkInfoNDArray",
    "ChunkReport",
    "ClosedError",
    "Codec",
    "DParams",
    "DeserializeMode",
    "Filter",
    "FormatError",
    "InstalledAlias",
    "KeywordError",
    "LockedError",
    "MapCell",
    "Meta",
    "MetalayerError",
    "MetalayerKeyError",
    "MetalayerValueError",
    "NDArray",
    "NDField",
    "NewerFormatError",
    "OIndex",
    "Operand",
    "PartReport",
    "PartitionReport",
    "PathKind",
    "ReadOnlyError",
    "RepairReport",
    "RepairedChunk",
    "SChunk",
    "SpecialValue",
    "SplitMode",
    "StagedChunk",
    "Storage",
    "StorageError",
    "SuperchunkError",
    "TruncatedError",
    "Tuner",
    "UnsafeDeserializationError",
    "UnsupportedError",
    "VerifyReport",
    "VlMeta",
    "__version__",
    "arange",
    "are_partitions_aligned",
    "are_partitions_behaved",
    "array",
    "asarray",
    "astype",
    "blosclib_version",
    "bool_",
    "bytes_",
    "chunk_map",
    "clib_info",
    "complex64",
    "complex128",
    "compress",
    "compress2",
    "compress_blosc1",
    "compressor_list",
    "compute_chunks_blocks",
    "concat",
    "concatenate",
    "copy",
    "cparams_dflts",
    "cpu_info",
    "decompress",
    "decompress2",
    "detect_number_of_cores",
    "dparams_dflts",
    "empty",
    "empty_like",
    "expand_dims",
    "explain_partition",
    "eye",
    "float16",
    "float32",
    "float64",
    "free_resources",
    "from_cframe",
    "from_pieces",
    "frombuffer",
    "fromiter",
    "full",
    "full_like",
    "get_blocksize",
    "get_cbuffer_sizes",
    "get_clib",
    "get_compressor",
    "get_cpu_info",
    "get_slice_nchunks",
    "identify",
    "install_as_blosc2",
    "int8",
    "int16",
    "int32",
    "int64",
    "linspace",
    "load",
    "load_array",
    "load_tensor",
    "matrix_transpose",
    "nans",
    "ncores",
    "ndarray_from_cframe",
    "nthreads",
    "object_",
    "ones",
    "ones_like",
    "open",
    "pack",
    "pack_array",
    "pack_array2",
    "pack_tensor",
    "permute_dims",
    "postfilter_funcs",
    "prefilter_funcs",
    "print_versions",
    "register_codec",
    "register_filter",
    "remove_urlpath",
    "repair",
    "reshape",
    "save",
    "save_array",
    "save_tensor",
    "schunk_from_cframe",
    "set_block_cache",
    "set_blocksize",
    "set_compressor",
    "set_kept_memory",
    "set_nthreads",
    "set_releasegil",
    "squeeze",
    "stack",
    "stage_chunk",
    "storage_dflts",
    "str_",
    "take",
    "take_along_axis",
    "transpose",
    "ucodecs_registry",
    "ufilters_registry",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uninit",
    "unpack",
    "unpack_array",
    "unpack_array2",
    "unpack_tensor",
    "verify",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    """Return what is loaded only when it is asked for, and what changes (`nthreads`)."""
    if name in _PLACE_OF:
        value = globals()[name] = getattr(import_module(f"superchunk.{_PLACE_OF[name]}"), name)
        return value
    if name in _MODULES:
        return import_module(f"superchunk.{name}")
    if name == "nthreads":
        from superchunk.params import default_nthreads  # as all names here

        return default_nthreads()
    if name == "cpu_info":
        from superchunk.core import get_cpu_info

        return get_cpu_info()
    msg = f"module {__name__!r} has no attribute {name!r}"
    if not name.startswith("_"):  # the import of a module may have asked, which needs no NumPy
        from superchunk._schunk.absent_names import elsewhere

        msg += elsewhere(name)
    raise AttributeError(msg)


def _before_fork() -> None:
    """Let other threads finish what they import, for the child could not; see `forks`."""
    import_module("superchunk._store.forks").finish_imports()


if hasattr(os, "register_at_fork"):
    # Now, as hooks run in the reverse order: what others do before a fork may import something.
    os.register_at_fork(before=_before_fork)


def __dir__() -> list[str]:
    """Return the public names and modules, loaded or not."""
    return sorted({*__all__, *_MODULES})
