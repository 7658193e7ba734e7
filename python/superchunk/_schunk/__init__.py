"""What `superchunk.schunk.SChunk` is composed of: its handle, opening by path and mode, staging, pickles and tokens."""
