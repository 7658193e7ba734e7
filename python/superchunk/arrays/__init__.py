"""Arrays: shapes over a super-chunk.

Stands above `superchunk.schunk` and below the names at the front.
"""
