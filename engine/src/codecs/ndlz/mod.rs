//! NDLZ: a codec for blocks of two-dimensional byte arrays.
//!
//! ```text
//! stream   02 | rows: i32 | cols: i32 | cells, row by row
//! cell     token | operands      side 4 or 8, less at the lower and right edge (those hold no rows of others)
//!
//! side 4   00 | bytes                  a literal, row by row      side 8   the same
//!          40 | byte                   all bytes the same
//!          C0 | k                      the whole cell again
//!          E0 E8 F0 F8 | k | row       three rows again                    A8 + a | k | 5 rows   rows a to a+2
//!          80 88 90 98 B0 B8 | k | 2 rows   two rows again                 88 + a | k | 6 rows   rows a and a+1
//!          28 30 38 | k | k            two rows again, and the others
//! ```
//!
//! `k` (u16) leads back from the token's offset in the stream: what is repeated is in the stream itself. The
//! stream carries its shape, so only writing needs to know it.
//!
//! Source: docs/format/codecs.md, section "NDLZ".

mod decode;
mod encode;

pub(crate) use decode::decode;
pub(crate) use encode::encode;

use crate::error::{Error, Result};
use crate::shape::BlockShape;

const NDIM: u8 = 2;
const HEADER_LENGTH: usize = 9;
const LITERAL: u8 = 0x00;
const VALUE: u8 = 0x40;
const AGAIN: u8 = 0xC0;

/// Rows that are repeated for each token of side 4 that repeats three, and two.
const TRIPLES: [(u8, [usize; 3]); 4] = [(0xE0, [1, 2, 3]), (0xE8, [0, 1, 2]), (0xF0, [0, 1, 3]), (0xF8, [0, 2, 3])];
const PAIRS: [(u8, [usize; 2]); 6] =
    [(0x88, [0, 1]), (0x90, [0, 2]), (0x98, [0, 3]), (0xB0, [1, 2]), (0xB8, [1, 3]), (0x80, [2, 3])];
/// For each token of side 4 that repeats two times two rows, which go together.
const DOUBLES: [(u8, [usize; 2], [usize; 2]); 3] =
    [(0x28, [0, 1], [2, 3]), (0x30, [0, 2], [1, 3]), (0x38, [0, 3], [1, 2])];
/// Tokens of side 8: so many rows in a row, from the one that is added to the token.
const RUNS: [(u8, usize); 2] = [(0xA8, 3), (0x88, 2)];

/// The block that is written, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    rows: usize,
    cols: usize,
    side: usize,
}

impl Plan {
    /// Check that blocks of this shape can be written; `meta` is the side of a cell.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] naming what does not fit.
    pub(crate) fn new(meta: u8, shape: Option<BlockShape>) -> Result<Self> {
        let bad = |name, expected: String, found: usize| Error::Argument {
            name,
            expected: expected.into(),
            found: i64::try_from(found).unwrap_or(i64::MAX),
        };
        if meta != 4 && meta != 8 {
            return Err(bad("codec_meta", "4 or 8, the side of a cell, with ndlz".into(), meta.into()));
        }
        let Some(shape) = shape else {
            let expected = "ndlz only with the block shape of a metalayer b2nd, which is missing".into();
            return Err(bad("codec", expected, 32));
        };
        let [rows, cols] = *shape.dims() else {
            return Err(bad("codec", format!("ndlz only with 2 dimensions, blocks are {shape}"), 32));
        };
        Ok(Self { rows, cols, side: meta.into() })
    }

    /// Bytes of a stream before it is encoded.
    pub(crate) fn nbytes(self) -> usize {
        self.rows * self.cols
    }
}

#[cfg(test)]
mod tests;
