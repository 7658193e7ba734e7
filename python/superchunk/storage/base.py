"""The names of `storage.protocol`, under the name that this module had."""

from superchunk.storage.protocol import ChunkSource, ChunkStore, FrameSettings, Snapshot

__all__ = ["ChunkSource", "ChunkStore", "FrameSettings", "Snapshot"]
