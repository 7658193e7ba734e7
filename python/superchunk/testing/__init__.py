"""What tests of superchunk, and of programs around it, can lean on.

`superchunk.testing.reference` is an executable form of the format pages: a chunk
decoder in plain Python, to be read beside ``docs/format/`` and to be compared with
the engine. It needs the packages ``lz4`` and ``zstandard``, which superchunk itself
does not need. Nothing here is imported by the rest of the package.
"""
