"""The formats that ``superchunk convert`` converts arrays between, a module for each.

::

    name          module   what it is                                   needs
    x.npy         npy      NumPy's file, items in one row               -
    x.b2nd        b2nd     an array in a Blosc2 frame                   -
    x.b2frame     frame    a stream of items in a Blosc2 frame          -
    x.zarr        zarr     a directory of chunks, format 2 or 3         superchunk[zarr]
    x.h5:/a/b     hdf5     a dataset in an HDF5 file                    superchunk[hdf5]

Each module has ``open_source(place)``, which returns a `base.Source` to read boxes from, and ``create(place, plan)``,
which returns a `base.Target` to write boxes to. `places` finds the module for a name on the command line. `boxes`
divides an array into boxes that fit into memory. `attributes` states which format stores which values. A new format is
a module with these two functions and a row in `places`.

Source: docs/cli.md, section "Arrays".
"""
