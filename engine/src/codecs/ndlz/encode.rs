//! Encoding NDLZ.
//!
//! Every literal row, pair and triple of rows that has been written is remembered by a hash, the latest one
//! where two meet; a cell is then written in the shortest way that what is remembered allows.

use super::{AGAIN, DOUBLES, HEADER_LENGTH, LITERAL, NDIM, PAIRS, Plan, RUNS, TRIPLES, VALUE};

/// How far back a reference leads at most: readers add up to 5 to it in 16 bits.
const FARTHEST: usize = 65530;
/// Bytes of the largest cell.
const LARGEST: usize = 64;

/// Where in the output bytes have been seen.
struct Seen {
    table: Vec<u32>,
    shift: u32,
}

impl Seen {
    fn new(ncells: usize) -> Self {
        let bits = (ncells.saturating_mul(16)).next_power_of_two().clamp(1 << 8, 1 << 15).ilog2();
        Self { table: vec![0; 1 << bits], shift: 64 - bits }
    }

    fn slot(&self, bytes: &[u8]) -> usize {
        const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut hash = bytes.len() as u64;
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME);
            hash ^= hash >> 32;
        }
        usize::try_from(hash.wrapping_mul(PRIME) >> self.shift).unwrap_or(0)
    }

    /// How far back from the token at `at` the bytes `wanted` are, if they are there.
    fn find(&self, out: &[u8], at: usize, wanted: &[u8]) -> Option<u16> {
        let from = self.table[self.slot(wanted)] as usize;
        let near = from > 0 && at - from <= FARTHEST;
        // What is there now: where two hashes meet, it may be shorter, and bytes behind it not be written yet.
        let same = near && out[..at].get(from..from + wanted.len()) == Some(wanted);
        if same { u16::try_from(at - from).ok() } else { None }
    }

    /// Remember the bytes `from..from + length` of the output.
    fn remember(&mut self, out: &[u8], from: usize, length: usize) {
        let slot = self.slot(&out[from..from + length]);
        self.table[slot] = u32::try_from(from).unwrap_or(0);
    }

    /// Remember the `nrows` rows of `width` bytes at `from`, whichever of them stand together.
    fn remember_rows(&mut self, out: &[u8], from: usize, nrows: usize, width: usize) {
        for together in 2..=3 {
            for row in 0..(nrows + 1).saturating_sub(together) {
                self.remember(out, from + row * width, together * width);
            }
        }
    }
}

/// The output, which may be too short.
struct Output<'o> {
    out: &'o mut [u8],
    end: usize,
}

impl Output<'_> {
    /// Append bytes; None when they do not fit.
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.end..self.end + bytes.len())?.copy_from_slice(bytes);
        self.end += bytes.len();
        Some(())
    }

    fn put_back(&mut self, token: u8, distance: u16) -> Option<()> {
        self.put(&[token])?;
        self.put(&distance.to_le_bytes())
    }
}

/// Encode the array `src` into the start of `dst` and return the bytes written; None when they do not fit, or `src`
/// is not the array that was planned for.
pub(crate) fn encode(plan: Plan, src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let Plan { rows, cols, side } = plan;
    if src.len() != plan.nbytes() {
        return None;
    }
    let mut output = Output { out: dst, end: 0 };
    output.put(&[NDIM])?;
    output.put(&i32::try_from(rows).ok()?.to_le_bytes())?;
    output.put(&i32::try_from(cols).ok()?.to_le_bytes())?;
    debug_assert_eq!(output.end, HEADER_LENGTH);
    let mut seen = Seen::new(rows.div_ceil(side) * cols.div_ceil(side));
    let mut buffer = [0; LARGEST];
    for top in (0..rows).step_by(side) {
        let height = side.min(rows - top);
        for left in (0..cols).step_by(side) {
            let width = side.min(cols - left);
            for row in 0..height {
                let begin = (top + row) * cols + left;
                buffer[row * width..(row + 1) * width].copy_from_slice(&src[begin..begin + width]);
            }
            let cell = &buffer[..height * width];
            if cell.iter().all(|byte| *byte == cell[0]) {
                output.put(&[VALUE, cell[0]])?;
                continue;
            }
            let at = output.end;
            if let Some(distance) = seen.find(output.out, at, cell) {
                output.put_back(AGAIN, distance)?;
                continue;
            }
            let whole = height == side && width == side;
            if whole && put_rows(cell, side, &mut output, &mut seen)? {
                continue;
            }
            output.put(&[LITERAL])?;
            output.put(cell)?;
            seen.remember(output.out, at + 1, cell.len());
            if whole {
                seen.remember_rows(output.out, at + 1, side, side);
            }
        }
    }
    Some(output.end)
}

/// Write a cell by rows that were seen before; false if none were, None if it does not fit.
fn put_rows(cell: &[u8], side: usize, output: &mut Output<'_>, seen: &mut Seen) -> Option<bool> {
    let at = output.end;
    // Three rows of side 8 are the most that are looked for.
    let mut wanted = [0; 24];
    let gather = |rows: &[usize], wanted: &mut [u8; 24]| {
        for (n, &row) in rows.iter().enumerate() {
            wanted[n * side..(n + 1) * side].copy_from_slice(&cell[row * side..(row + 1) * side]);
        }
        rows.len() * side
    };
    let mut find = |rows: &[usize], out: &[u8]| {
        let length = gather(rows, &mut wanted);
        seen.find(out, at, &wanted[..length])
    };
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    if side == 4 {
        for (token, one, other) in DOUBLES {
            if let (Some(one), Some(other)) = (find(&one, output.out), find(&other, output.out)) {
                output.put_back(token, one)?;
                output.put(&other.to_le_bytes())?;
                return Some(true);
            }
        }
        let triples = TRIPLES.iter().map(|(token, rows)| (*token, &rows[..]));
        let pairs = PAIRS.iter().map(|(token, rows)| (*token, &rows[..]));
        for (token, rows) in triples.chain(pairs) {
            if let Some(distance) = find(rows, output.out) {
                put_rest(cell, side, (token, distance), rows, output, seen)?;
                return Some(true);
            }
        }
    } else {
        for (token, nrows) in RUNS {
            for (offset, rows) in (0..).zip(all[..side].windows(nrows)) {
                if let Some(distance) = find(rows, output.out) {
                    put_rest(cell, side, (token + offset, distance), rows, output, seen)?;
                    return Some(true);
                }
            }
        }
    }
    Some(false)
}

/// Write that `rows` are repeated, and the other rows of the cell as they are.
fn put_rest(
    cell: &[u8],
    side: usize,
    (token, distance): (u8, u16),
    rows: &[usize],
    output: &mut Output<'_>,
    seen: &mut Seen,
) -> Option<()> {
    output.put_back(token, distance)?;
    let from = output.end;
    for row in (0..side).filter(|row| !rows.contains(row)) {
        output.put(&cell[row * side..(row + 1) * side])?;
    }
    seen.remember_rows(output.out, from, side - rows.len(), side);
    Some(())
}
