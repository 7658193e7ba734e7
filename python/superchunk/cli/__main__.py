"""``python -m superchunk.cli``: the command, where no ``superchunk`` is on the path."""

from __future__ import annotations

import sys

from superchunk.cli import main

sys.exit(main())
