"""`stage_chunk`: writing a chunk of a sparse frame in a process of one's own.

The coordinator takes the file over in `_store.staged_files`.

Source: docs/format/sparse.md.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from superchunk._codec.buffers import byte_view, check_buffersize
from superchunk._codec.encoder import Encoder, with_typesize
from superchunk._codec.parameters import cparams_of
from superchunk._store.chunk_folder import is_folder, open_folder
from superchunk._store.frame_loading import settings_of
from superchunk._store.os_file import FileBytes
from superchunk._store.path_target import identify
from superchunk._store.sparse_frame_loading import absolute, read_present
from superchunk._store.staged_files import StagedChunk, place_chunk
from superchunk.exceptions import ArgumentError
from superchunk.params import as_cparams, local_path

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from superchunk._codec.buffers import AnyBuffer
    from superchunk._store.store_interface import FrameSettings
    from superchunk.params import CParams, CParamsDict

__all__ = ["StagedChunk", "stage_chunk"]


def stage_chunk(
    urlpath: str | os.PathLike[str],
    chunk_id: int,
    data: AnyBuffer,
    cparams: CParams | CParamsDict | None = None,
) -> StagedChunk:
    """Compress `data` into the chunk file of an id of a sparse frame; in any process, without a lock.

    The chunk is on the disk when this returns, and no part of the frame until the
    coordinator calls `SChunk.append_staged` or `SChunk.replace_staged`.

    Parameters
    ----------
    urlpath
        The directory of the sparse frame.
    chunk_id
        An id from `SChunk.reserve_chunk_ids`.
    data
        A C-contiguous buffer of 1 to `MAX_BUFFERSIZE` bytes.
    cparams
        How to compress; None: as the frame records, with one thread. The typesize is
        the frame's.

    Returns
    -------
    StagedChunk
        What the coordinator needs to know. Data of one value gets no file: it is in here.

    Raises
    ------
    ArgumentError
        `urlpath` is no directory, or `chunk_id` no possible id.
    ValueError
        `data` is empty, too large or not contiguous.
    FormatError
        There is no sparse frame, or a damaged one.
    StorageError
        That id has a file already (errno EEXIST), or the system refuses.

    """
    path = local_path(urlpath)
    if path is None or not is_folder(path):
        found = "None" if path is None else f"{path}, {identify(path)}"
        msg = f"urlpath: expected the directory of a sparse frame, got {found}"
        raise ArgumentError(msg)
    view = byte_view(data)
    check_buffersize(view.nbytes, "data")
    if not view.nbytes:
        msg = "data: expected at least 1 byte, a chunk cannot be empty"
        raise ValueError(msg)
    folder = absolute(path)
    settings, meta = _recorded(folder)
    encoder = Encoder(_chosen(settings, cparams), _nobody, lambda: meta)
    return place_chunk(folder, operator.index(chunk_id), encoder.chunk(view, 0))


def _nobody() -> None:
    """Return the SChunk that user codecs get: there is none in this process."""


def _recorded(folder: str) -> tuple[FrameSettings, Mapping[str, bytes]]:
    """Return what a sparse frame records for new chunks, and its fixed metalayers."""
    opened = FileBytes(folder, open_folder(folder))
    try:
        file, loaded = read_present(opened, patient=True)
        file.close()
    except FileNotFoundError as error:
        msg = f"urlpath: expected the directory of a sparse frame, got {folder}, {identify(folder)}"
        raise ArgumentError(msg) from error
    finally:
        opened.close()
    raw = loaded.raw_header
    return settings_of(loaded.header), {name: raw[at : at + n] for name, (at, n) in loaded.layers.items()}


def _chosen(settings: FrameSettings, cparams: CParams | CParamsDict | None) -> CParams:
    recorded = cparams_of(settings, 1)
    if cparams is None:
        return recorded
    return with_typesize(as_cparams(cparams, recorded.typesize), recorded.typesize)
