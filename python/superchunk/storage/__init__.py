"""Where chunks live: in memory, or in a contiguous frame in a file.

`base` has the protocol that a super-chunk works on, `memory` and `contiguous` its two
implementations over the shared `table`, `cframe` turns stores into whole frames as
bytes and back.
"""

from __future__ import annotations
