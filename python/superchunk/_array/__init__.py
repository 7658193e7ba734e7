"""Arrays: shapes over a super-chunk.

::

    NDArray        ndarray  fields  conversions            the class, fields of records, all items as NumPy's
    state          view  geometry  axes                    an array at one moment, and where its items are
    items          selection  reading  writing  values     a key, planned and carried out
                   inner  resizing  memory  pinning
    walks          chunkwise  chunks_intersecting  card    chunks and blocks one by one, and which ones a slice needs
    constructors   creation  ranges  converting            what users call
                   joining  pieces  functions
                   plan  sources  filling                  the checked plan, the items, the chunks
                   copying  reshaping                      new super-chunks of an array's items
    partition      partition  _edges  partition_report     chunk and block shapes

Internals take an `ArrayView` and return stores or a SChunk; only constructors and methods wrap one in `NDArray`.
Stands above `superchunk.schunk` and below the names at the front.
"""
