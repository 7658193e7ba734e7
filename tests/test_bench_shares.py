"""Where the time of a cell goes: samples counted by the clock, and what the shares limit. No test looks at a clock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

pytest.importorskip("blosc2")

import shares
import shares_summary
from matrix_summary import Cell

ENGINE = "/somewhere/_engine.abi3.so"


@pytest.mark.parametrize(
    ("symbol", "library", "part"),
    [
        ("clear_page_erms", "[kernel.kallsyms]", "system"),
        ("ZSTD_decompressSequences_bmi2.constprop.0", ENGINE, "library"),
        (".L_4X1_loop_body", ENGINE, "library"),
        ("zlib_rs::deflate::longest_match::longest_match", ENGINE, "library"),
        ("superchunk_engine::codecs::blosclz::decode", ENGINE, "own"),
        ("superchunk_engine::filters::shuffle::avx2::shuffle", ENGINE, "filters"),
        ("superchunk_engine::chunk::block::<impl superchunk_engine::chunk::Chunk>::copy_plain", ENGINE, "copies"),
        ("__memmove_evex_unaligned_erms", "/lib/libc.so.6", "copies"),
        ("superchunk_engine::chunk::Chunk::open", ENGINE, "engine"),
        ("_PyEval_EvalFrameDefault", "/lib/libpython3.11.so.1.0", "rest"),
    ],
)
def test_a_function_belongs_to_a_part(symbol: str, library: str, part: str) -> None:
    assert shares.part_of(symbol, library) == part


def test_a_sample_belongs_to_the_cell_that_was_at_work() -> None:
    lines = ["10.0 11.0 text lz4 5 none compress", "12.0 13.0 text lz4 5 none decompress"]
    samples = [
        f"     9.900000:     7fab60243f02 LZ4_compress_fast ({ENGINE})",
        f"    10.500000:     7fab60243f02 LZ4_compress_fast ({ENGINE})",
        f"    11.500000:     7fab60243f02 LZ4_compress_fast ({ENGINE})",
        f"    12.500000:     7fab60243f02 LZ4_decompress_safe ({ENGINE})",
        "    12.600000: ffffffff814004f5 __rcu_read_lock ([kernel.kallsyms])",
        "no sample",
    ]
    found = shares.counted(list(shares.spans(lines)), samples)
    assert found["text", "lz4", 5, "none", "compress"] == {"library": 1}
    assert found["text", "lz4", 5, "none", "decompress"] == {"library": 1, "system": 1}


def test_the_limit_is_what_a_cell_would_reach_with_the_library_and_one_copy_alone() -> None:
    names: dict[str, Any] = {"data": "text", "codec": "lz4", "level": 5, "filters": "none"}
    speeds: dict[str, Any] = {"compress": 1000.0, "compress_theirs": 500.0, "compress_x": 2.0}
    back: dict[str, Any] = {"decompress": 5000.0, "decompress_theirs": 5000.0, "decompress_x": 1.0}
    rest: dict[str, Any] = {
        "held_out": False,
        "threads": 1,
        "ratio": 2.0,
        "ratio_theirs": 2.0,
        "size": 1.0,
        "rounds": 3,
    }
    cell = Cell(**names, **speeds, **back, **rest)
    assert shares_summary.limit(cell, "compress", 0.4, 10.0) == 4.0  # two fifths, and a copy that takes a tenth
    assert shares_summary.limit(cell, "decompress", 0.9, 10.0) == 1.0  # never below what it is
    parts = dict.fromkeys(shares.ALL_PARTS, 0.0) | {"library": 0.4, "filters": 0.6}
    record = {"cells": [{**names, "direction": "compress", "samples": 10, "shares": parts}]}
    matrix = {"memory_copy_gb_s": 10.0, "cells": [cell._asdict()]}
    (share,) = shares_summary.shares(record, matrix)
    assert (share.library, share.our_filters, share.limit) == (40.0, 60.0, 4.0)
