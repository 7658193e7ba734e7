"""An executable specification of the chunk format: slow, obvious, and complete.

::

    header.py    the 16 or 32 bytes that open a chunk
    blocks.py    block table, dictionary, streams, variable-length blocks
    codecs.py    one stream -> its bytes        blosclz.py  our own BloscLZ decoder
    filters.py   one block, filtered -> plain   special.py  chunks of one value
    chunk.py     decode, decode_range, decode_vlblocks

Each module follows a page of ``docs/format/`` and is meant to be read beside it. It
shares nothing with the engine, so that an agreement of the two means something. It
only decodes, one block after the other, and it checks every rule of the pages.

Source: docs/format/chunk.md, codecs.md and filters.md.
"""

from reference.chunk import decode, decode_range, decode_vlblocks
from reference.header import Header

__all__ = ["Header", "decode", "decode_range", "decode_vlblocks"]
