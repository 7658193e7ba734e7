//! Decoding NDLZ.

use super::{AGAIN, DOUBLES, HEADER_LENGTH, LITERAL, NDIM, PAIRS, RUNS, TRIPLES, VALUE};
use crate::codecs::Verdict;

const TOO_SHORT: &str = "it ends within a cell";
const OUTSIDE: &str = "a reference leads out of the stream";

/// What a cell consists of.
enum Cell {
    /// One byte, over and over.
    Value(u8),
    /// Where in the stream each row is.
    Rows([usize; 8]),
}

/// Decode `src`, which must be an array of exactly `dst.len()` bytes in cells of side `meta`.
///
/// # Errors
///
/// What is wrong with the stream; `dst` is then of no use.
pub(crate) fn decode(meta: u8, src: &[u8], dst: &mut [u8]) -> Verdict {
    if meta != 4 && meta != 8 {
        return Err("codec_meta is neither 4 nor 8");
    }
    let side = usize::from(meta);
    let Some((&[ndim, r0, r1, r2, r3, c0, c1, c2, c3], _)) = src.split_first_chunk::<HEADER_LENGTH>() else {
        return Err("it is shorter than its header");
    };
    if ndim != NDIM {
        return Err("it has not 2 dimensions");
    }
    let rows = usize::try_from(i32::from_le_bytes([r0, r1, r2, r3])).map_err(|_| "rows are negative")?;
    let cols = usize::try_from(i32::from_le_bytes([c0, c1, c2, c3])).map_err(|_| "cols are negative")?;
    if rows.checked_mul(cols) != Some(dst.len()) {
        return Err("rows times cols is not the stream's length");
    }
    let mut at = HEADER_LENGTH;
    for top in (0..rows).step_by(side) {
        let height = side.min(rows - top);
        for left in (0..cols).step_by(side) {
            let width = side.min(cols - left);
            let (cell, next) = read_cell(src, at, side, height, width)?;
            for row in 0..height {
                let begin = (top + row) * cols + left;
                let out = &mut dst[begin..begin + width];
                match &cell {
                    Cell::Value(value) => out.fill(*value),
                    Cell::Rows(from) => {
                        out.copy_from_slice(src.get(from[row]..from[row] + width).ok_or(OUTSIDE)?);
                    }
                }
            }
            at = next;
        }
    }
    if at == src.len() { Ok(()) } else { Err("bytes are left over") }
}

/// Read the cell whose token is at `at`; return it and where the next one is.
fn read_cell(src: &[u8], at: usize, side: usize, height: usize, width: usize) -> Verdict<(Cell, usize)> {
    let token = *src.get(at).ok_or(TOO_SHORT)?;
    let back = |offset: usize| -> Verdict<usize> {
        let raw = src.get(offset..).and_then(|rest| rest.first_chunk::<2>()).ok_or(TOO_SHORT)?;
        // A cell does not refer to itself.
        let distance = Some(usize::from(u16::from_le_bytes(*raw))).filter(|&distance| distance > 0);
        distance.and_then(|distance| at.checked_sub(distance)).ok_or(OUTSIDE)
    };
    let mut from = [0; 8];
    let mut put = |rows: &[usize], begin: usize| {
        for (n, &row) in rows.iter().enumerate() {
            from[row] = begin + n * width;
        }
    };
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    // Where literal rows begin, and how many there are.
    let (literal, nliteral) = match token {
        LITERAL => {
            put(&all[..height], at + 1);
            (at + 1, height)
        }
        VALUE => return Ok((Cell::Value(*src.get(at + 1).ok_or(TOO_SHORT)?), at + 2)),
        AGAIN => {
            put(&all[..height], back(at + 1)?);
            (at + 3, 0)
        }
        _ if height < side || width < side => return Err("a cell at the edge repeats rows"),
        _ if side == 4 => {
            let kind = token & 0xF8;
            let pairs = PAIRS.iter().find(|(t, _)| *t == kind).map(|(_, rows)| &rows[..]);
            let triples = TRIPLES.iter().find(|(t, _)| *t == kind).map(|(_, rows)| &rows[..]);
            if let Some(again) = pairs.or(triples) {
                put(again, back(at + 1)?);
                let mut missing = (0..4).filter(|row| !again.contains(row));
                let mut end = at + 3;
                for row in &mut missing {
                    put(&[row], end);
                    end += width;
                }
                (at + 3, 4 - again.len())
            } else if let Some((_, one, other)) = DOUBLES.iter().find(|(t, ..)| *t == kind) {
                put(one, back(at + 1)?);
                put(other, back(at + 3)?);
                (at + 5, 0)
            } else {
                return Err("a token that nobody defined");
            }
        }
        _ => {
            let kind = token & 0xF8;
            let first = usize::from(token & 7);
            let Some(again) = RUNS.iter().find(|(t, _)| *t == kind).and_then(|&(_, n)| all.get(first..first + n))
            else {
                return Err("a token that nobody defined");
            };
            put(again, back(at + 1)?);
            let mut end = at + 3;
            for row in all.iter().filter(|row| !again.contains(row)) {
                put(&[*row], end);
                end += width;
            }
            (at + 3, 8 - again.len())
        }
    };
    let next = literal + nliteral * width;
    if next > src.len() {
        return Err(TOO_SHORT);
    }
    Ok((Cell::Rows(from), next))
}
