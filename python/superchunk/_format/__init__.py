"""The parts of a contiguous frame: bytes into checked values, and back, without I/O.

`frame_header` has the 87 fixed bytes, `metalayers` the block behind them, and `frame_index` the list of offsets.
`trailer` has the variable metalayers and the frame's end, and `metalayer_values` the values that users store in
metalayers. Where the bytes are is the business of `_store`.
"""

from __future__ import annotations
