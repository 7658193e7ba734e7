"""Where chunks are: in memory, in one file, or in a directory of files.

::

    store_interface                              ChunkList, ChunkSource, ChunkStore: what a place for chunks must do
    memory                                       chunks in memory
    frame_store                                  FrameStore: a handle on the one state of a frame in this process
    chunk_list    chunk_list_view                what chunks are where, and their sizes
    changes_and_undo    frame_commit             changes with marks, and when they are committed
    contiguous_frame                             one file: following it, its commits
    sparse_frame  sparse_frame_loading           a directory: the same
    locks         lock_file     snapshot_locks   who may write now
    path_target   frame_names   staged_files     what lies at a path, names taken
    orphans       older_commits                  what a crash left
    frame_bytes   transfer      copying          whole frames as bytes, and from store to store

A store moves chunks and never decodes them.
"""

from __future__ import annotations
