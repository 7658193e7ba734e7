"""Single arrays as bytes or files, for those who want to put one away and not to slice it.

::

    pickles   pack, pack_array                 a pickle in one chunk; read without being run
    frames    pack_array2, save_array, ...     a frame, with dtype and shape in a vlmetalayer

Stands beside `superchunk._api.opening` and uses it; arrays that slice are in `superchunk._array`.
"""
