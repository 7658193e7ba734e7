"""Frames go both ways between superchunk and the package blosc2.

pip install blosc2
python examples/both_ways.py
"""

from __future__ import annotations

import blosc2
import numpy as np

import superchunk

values = np.linspace(0, 1, 100_000)

with superchunk.SChunk(data=values.tobytes(), urlpath="ours.b2frame", mode="w") as ours:
    ours.vlmeta["made by"] = "superchunk"
theirs = blosc2.open("ours.b2frame", mode="r")
print("blosc2 reads", theirs.nbytes, "bytes made by", theirs.vlmeta["made by"], theirs[:] == values.tobytes())

theirs = blosc2.SChunk(data=values, urlpath="theirs.b2frame", mode="w", cparams={"codec": blosc2.Codec.LZ4})
theirs.vlmeta["made by"] = "blosc2"
with superchunk.open("theirs.b2frame") as ours:
    print("superchunk reads", ours.nbytes, "bytes made by", ours.vlmeta["made by"], ours[:] == values.tobytes())
