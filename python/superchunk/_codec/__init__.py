"""How chunks are coded: `Encoder` and `Decoder`, codecs and filters of users, special values, buffers.

Stands above `_store`, which has chunks and does not decode them, and below `superchunk.schunk`.
"""
