"""Arrays: shapes over a super-chunk.

::

    NDArray        ndarray        fields           conversions        the class, fields of records, as NumPy's
    state          array_view     chunk_geometry   axes               an array at one moment, which chunk has an item
    items          slice_planner  reading  writing  values            a key, planned and carried out
                   sub_arrays     resizing  memory  pinning
    walks          chunkwise      get_slice_nchunks  notebook_card    chunks and blocks one by one, those of a slice
    constructors   creation       ranges   converting                 what users call
                   joining        from_pieces  functions
                   creation_plan  sources  filling                    the checked plan, the items, the chunks
                   copying        reshaping                           new super-chunks of an array's items
    partition      partition      _edges   partition_report           chunk and block shapes

Internals take an `ArrayView` and return stores or a SChunk; only constructors and methods wrap one in `NDArray`.
Stands above `superchunk.schunk` and below the names at the front.
"""
