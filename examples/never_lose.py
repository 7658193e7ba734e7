"""What happens when something goes wrong: in the program, and on the disk.

python examples/never_lose.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import superchunk

PATH = Path("numbers.b2frame")
DAY = np.arange(50_000, dtype="i8")

# A transaction commits all of its changes or none, and the commit is on the disk.
with superchunk.SChunk(chunksize=DAY.nbytes, cparams={"typesize": 8}, urlpath=PATH, mode="w") as numbers:
    with numbers.transaction():
        for day in range(3):
            numbers.append_data(DAY * day)
        numbers.vlmeta["days"] = 3
    try:
        with numbers.transaction():
            numbers.append_data(DAY * 3)
            numbers.vlmeta["days"] = 4
            raise ConnectionError("the instrument does not answer")  # noqa: TRY301
    except ConnectionError as error:
        print(f"{error}: still {numbers.nchunks} chunks, days = {numbers.vlmeta['days']}")
    for day in range(3, 5):
        numbers.append_data(DAY * day)
    numbers.vlmeta["days"] = 5
    numbers.flush()
print("verify:", superchunk.verify(PATH).status)

# One bit flips, in the trailer of the newest commit.
raw = bytearray(PATH.read_bytes())
raw[-60] ^= 1
PATH.write_bytes(raw)
print("one bit later:", superchunk.verify(PATH).status)
try:
    superchunk.open(PATH)
except superchunk.FormatError as error:
    print("open:", error)

# `recover=True` reads the newest intact commit immediately,
with superchunk.open(PATH, recover=True) as numbers:
    print(f"recover: {numbers.nchunks} chunks, days = {numbers.vlmeta['days']}")

# and repair writes every intact part to another file and reports how certain each is.
superchunk.remove_urlpath("repaired.b2frame")  # left by an earlier run
report = superchunk.repair(PATH, "repaired.b2frame")
print("repair:", report)
with superchunk.open("repaired.b2frame") as numbers:
    print(f"repaired: {numbers.nchunks} chunks,", superchunk.verify("repaired.b2frame").status)
