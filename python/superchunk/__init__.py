"""Blosc2 storage: chunks, super-chunks, contiguous frames and metalayers.

The names are those that users of python-blosc2 know; `docs/differences.md` lists
where they do something else.

Examples
--------
>>> import superchunk
>>> s = superchunk.SChunk(data=b"0123456789" * 1000, chunksize=1000)
>>> s[5:12]
b'5678901'

"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from superchunk._blockfuncs import postfilter_funcs, prefilter_funcs
from superchunk._cpu import print_versions
from superchunk._elsewhere import elsewhere
from superchunk._frames import from_cframe, load, ndarray_from_cframe, open, schunk_from_cframe  # noqa: A004
from superchunk._opening import remove_urlpath
from superchunk._staged import StagedChunk, stage_chunk
from superchunk._user import register_codec, register_filter, ucodecs_registry, ufilters_registry
from superchunk._version import VERSION_DATE, VERSION_STRING, __version__, blosclib_version
from superchunk.arrays.calls import ChunkInfoNDArray
from superchunk.arrays.converting import array, asarray, astype, copy
from superchunk.arrays.creation import (
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
from superchunk.arrays.fields import NDField
from superchunk.arrays.functions import reshape, save, take, take_along_axis
from superchunk.arrays.joining import concat, concatenate, stack
from superchunk.arrays.ndarray import NDArray, OIndex
from superchunk.arrays.pieces import from_pieces
from superchunk.arrays.ranges import arange, eye, linspace
from superchunk.arrays.touched import get_slice_nchunks
from superchunk.arrays.views import expand_dims, squeeze
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
    DParams,
    Filter,
    SpecialValue,
    SplitMode,
    Storage,
    Tuner,
    cparams_dflts,
    default_nthreads,
    dparams_dflts,
    ncores,
    set_nthreads,
    storage_dflts,
)
from superchunk.schunk import ChunkInfo, SChunk

if TYPE_CHECKING:
    from superchunk._chunkmap import MapCell, chunk_map
    from superchunk._repair import RepairedChunk, RepairReport, repair
    from superchunk._report import ChunkReport, PartReport, VerifyReport
    from superchunk._verify import verify
    from superchunk.arrays.partition_report import (
        PartitionReport,
        are_partitions_aligned,
        are_partitions_behaved,
        compute_chunks_blocks,
        explain_partition,
    )
    from superchunk.packed.frames import (
        load_array,
        load_tensor,
        pack_array2,
        pack_tensor,
        save_array,
        save_tensor,
        unpack_array2,
        unpack_tensor,
    )
    from superchunk.packed.pickles import pack, pack_array, unpack, unpack_array

    nthreads: int
    cpu_info: dict[str, int]

IS_WASM: Final = sys.platform == "emscripten"
"""Whether this is WebAssembly."""

_LATER: Final = {
    "ChunkReport": "superchunk._report",
    "MapCell": "superchunk._chunkmap",
    "PartReport": "superchunk._report",
    "PartitionReport": "superchunk.arrays.partition_report",
    "RepairReport": "superchunk._repair",
    "RepairedChunk": "superchunk._repair",
    "VerifyReport": "superchunk._report",
    "are_partitions_aligned": "superchunk.arrays.partition_report",
    "are_partitions_behaved": "superchunk.arrays.partition_report",
    "chunk_map": "superchunk._chunkmap",
    "compute_chunks_blocks": "superchunk.arrays.partition_report",
    "explain_partition": "superchunk.arrays.partition_report",
    "load_array": "superchunk.packed.frames",
    "load_tensor": "superchunk.packed.frames",
    "pack": "superchunk.packed.pickles",
    "pack_array": "superchunk.packed.pickles",
    "pack_array2": "superchunk.packed.frames",
    "pack_tensor": "superchunk.packed.frames",
    "repair": "superchunk._repair",
    "save_array": "superchunk.packed.frames",
    "save_tensor": "superchunk.packed.frames",
    "unpack": "superchunk.packed.pickles",
    "unpack_array": "superchunk.packed.pickles",
    "unpack_array2": "superchunk.packed.frames",
    "unpack_tensor": "superchunk.packed.frames",
    "verify": "superchunk._verify",
}
"""What not every program needs, and where it is: loaded when it is asked for, so that importing is quick."""

__all__ = [
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
    "Filter",
    "FormatError",
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
    "PartReport",
    "PartitionReport",
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
    "chunk_map",
    "clib_info",
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
    "linspace",
    "load",
    "load_array",
    "load_tensor",
    "nans",
    "ncores",
    "ndarray_from_cframe",
    "nthreads",
    "ones",
    "ones_like",
    "open",
    "pack",
    "pack_array",
    "pack_array2",
    "pack_tensor",
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
    "set_nthreads",
    "set_releasegil",
    "squeeze",
    "stack",
    "stage_chunk",
    "storage_dflts",
    "take",
    "take_along_axis",
    "ucodecs_registry",
    "ufilters_registry",
    "uninit",
    "unpack",
    "unpack_array",
    "unpack_array2",
    "unpack_tensor",
    "verify",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  (as Python asks for)
    """Return what changes (`nthreads`), and what is made or loaded only when it is asked for."""
    if name in _LATER:
        value = globals()[name] = getattr(import_module(_LATER[name]), name)
        return value
    if name == "nthreads":
        return default_nthreads()
    if name == "cpu_info":
        return get_cpu_info()
    msg = f"module {__name__!r} has no attribute {name!r}{elsewhere(name)}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
