"""Where chunks are: in memory, in one file, or in a directory of files.

::

    protocol    ChunkList, ChunkSource, ChunkStore         what a place for chunks must do
    memory      chunks in memory
    frames      FrameStore                                 a handle on the one state of a frame in this process
    changes     committed                                  changes with marks, and when they are committed
    contiguous                                             one file: following it, its commits
    sparse      sparse_loading                             a directory: the same
    locks       sidecar  shared_locks                      who may write now
    target      names  staging  orphans  recovery          what lies at a path, names taken, what a crash left
    cframe      transfer  copying                          whole frames as bytes, and from store to store

A store moves chunks and never decodes them.
"""

from __future__ import annotations
