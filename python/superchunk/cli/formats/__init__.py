"""The formats that ``superchunk convert`` moves arrays between, a module for each.

::

    name          module   what it is                                   needs
    x.npy         npy      NumPy's file, items in one row               -
    x.b2nd        b2nd     an array in a Blosc2 frame                   -
    x.b2frame     frame    a stream of items in a Blosc2 frame          -
    x.zarr        zarr     a directory of chunks, format 2 or 3         superchunk[zarr]
    x.h5:/a/b     hdf5     a dataset in an HDF5 file                    superchunk[hdf5]

Each has ``open_source(place)`` and ``create(place, plan)``, which give a `base.Source` to read boxes from and a
`base.Target` to write boxes to. `places` finds out which module a name on the command line means; `boxes` cuts an
array into boxes that fit into memory; `attributes` says which values of metadata go where. A further format is a
module of these two functions and a row in `places`.

Source: docs/cli.md, section "Arrays".
"""
