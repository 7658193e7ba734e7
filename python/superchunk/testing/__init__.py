"""What tests of superchunk, and of programs around it, can lean on.

`superchunk.testing.reference` is an executable form of the format pages: a chunk
decoder in plain Python, to be read beside ``docs/format/`` and to be compared with
the engine. It needs the packages ``lz4`` and ``zstandard``, which superchunk itself
does not need.

`superchunk.testing.crashlab` is a laboratory for crashes: it records what a workload does
to the disk, makes every state real that a killed process or a loss of power may leave, and
looks what is found there. Nothing here is imported by the rest of the package.
"""
