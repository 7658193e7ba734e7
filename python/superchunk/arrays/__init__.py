"""Arrays: shapes over a super-chunk.

::

    NDArray        base  form  ndarray  calls  sharing  fields  views  card      what it is, and what it can do
    items          selection  reading  writing  values  memory  resizing         an index, planned and carried out
    constructors   creation  ranges  converting  joining  pieces  reshaping      what users call
                   making  sources  filling                                      blueprint, items, chunks
    partition      partition  _edges  partition_report                           chunk and block shapes
    questions      touched  functions                                            beside the class

Stands above `superchunk.schunk` and below the names at the front.
"""
