//! Literals in a Huffman code, decoded as far as somebody wants them.
//!
//! ```text
//! tree | [jumps: 3 x u16] | stream 0 | stream 1 | stream 2 | stream 3
//! ```
//!
//! The streams have a quarter of the literals each, and one can be decoded without the others.
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 4.2.

use super::bits::Backward;
use super::fse::{Shares, Table};

/// The longest code, in bits.
const MOST_BITS: u32 = 11;
/// Symbols that a word of 57 bits holds in any case.
const AT_ONCE: usize = 5;
/// The largest log of a table for weights.
const MOST_WEIGHTS_LOG: u32 = 6;

/// A code by its first bits: the symbol, and the code's length in bits.
#[derive(Debug)]
struct Code {
    cells: Vec<[u8; 2]>,
    log: u32,
}

/// One stream, and how far it has been decoded.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Literals before this stream.
    begin: usize,
    /// Literals to the end of this stream.
    end: usize,
    /// Literals before this one have been decoded.
    done: usize,
    /// Where its bytes stand among those of the section, and how many bits of them are left.
    bytes: (usize, usize),
    left: usize,
}

/// Scratch space and state of the literals of one block.
#[derive(Debug)]
pub(super) struct Literals {
    code: Code,
    weights: Table,
    parts: [Part; 4],
    nparts: usize,
    out: Vec<u8>,
}

impl Default for Literals {
    fn default() -> Self {
        let code = Code { cells: vec![[0; 2]; 1 << MOST_BITS], log: 0 };
        Self { code, weights: Table::default(), parts: [Part::default(); 4], nparts: 0, out: Vec::new() }
    }
}

impl Literals {
    /// Take `count` literals, coded in `section` in one stream or four.
    pub(super) fn open(&mut self, section: &[u8], count: usize, four: bool) -> Option<()> {
        let streams = self.open_tree(section)?;
        let mut at = section.len() - streams.len();
        self.nparts = if four { 4 } else { 1 };
        let quarter = if four { count.div_ceil(4) } else { count };
        let jumps = if four { streams.first_chunk::<6>()? } else { &[0; 6] };
        at += if four { 6 } else { 0 };
        for (n, part) in self.parts[..self.nparts].iter_mut().enumerate() {
            let (begin, end) = (n * quarter, ((n + 1) * quarter).min(count));
            let length = match jumps.get(2 * n..2 * n + 2) {
                Some(jump) if four => usize::from(u16::from_le_bytes([jump[0], jump[1]])),
                _ => section.len().checked_sub(at)?,
            };
            let bits = Backward::new(section.get(at..at.checked_add(length)?)?)?;
            if begin > end {
                return None;
            }
            *part = Part { begin, end, done: begin, bytes: (at, at + length), left: bits.left };
            at += length;
        }
        if self.out.len() < count {
            self.out.resize(count, 0);
        }
        Some(())
    }

    /// Read the tree and give what follows it.
    fn open_tree<'a>(&mut self, section: &'a [u8]) -> Option<&'a [u8]> {
        let (&head, rest) = section.split_first()?;
        let mut weights = [0_u8; 256];
        let (count, rest) = if head >= 128 {
            let count = usize::from(head) - 127;
            let (packed, rest) = rest.split_at_checked(count.div_ceil(2))?;
            for (pair, byte) in weights.chunks_exact_mut(2).zip(packed) {
                pair.copy_from_slice(&[byte >> 4, byte & 15]);
            }
            (count, rest)
        } else {
            let (coded, rest) = rest.split_at_checked(head.into())?;
            (self.read_weights(coded, &mut weights)?, rest)
        };
        // The last symbol has what the others leave of a power of two.
        weights[count..].fill(0);
        let mut sum = 0_u32;
        for &weight in &weights[..count] {
            if u32::from(weight) > MOST_BITS {
                return None;
            }
            sum += (1 << weight) >> 1;
        }
        let log = sum.checked_ilog2()? + 1;
        let left = (1_u32 << log) - sum;
        if log > MOST_BITS || !left.is_power_of_two() {
            return None;
        }
        *weights.get_mut(count)? = u8::try_from(left.ilog2() + 1).ok()?;
        self.code.build(&weights[..=count], log)?;
        Some(rest)
    }

    fn read_weights(&mut self, coded: &[u8], weights: &mut [u8; 256]) -> Option<usize> {
        let (shares, rest) = Shares::read(coded, MOST_WEIGHTS_LOG)?;
        self.weights.build(&shares, |symbol| Some((u32::try_from(symbol).ok()?, 0)))?;
        let Table { cells, log } = &self.weights;
        let mut bits = Backward::new(rest)?;
        let mut states = [bits.read(*log)?, bits.read(*log)?];
        // Two states take turns; when the bits are used up, the other one has the last symbol.
        for count in 0..254 {
            let turn = count % 2;
            let cell = cells.get(usize::try_from(states[turn]).ok()?)?;
            weights[count] = u8::try_from(cell.value).ok()?;
            let Some(more) = bits.read(cell.nbits.into()) else {
                let other = cells.get(usize::try_from(states[1 - turn]).ok()?)?;
                weights[count + 1] = u8::try_from(other.value).ok()?;
                return Some(count + 2);
            };
            states[turn] = u64::from(cell.base) + more;
        }
        None
    }

    /// Literals `from..to` of those coded in `section`.
    pub(super) fn get(&mut self, section: &[u8], from: usize, to: usize) -> Option<&[u8]> {
        for n in 0..self.nparts {
            if self.parts[n].begin < to && from < self.parts[n].end {
                self.decode(section, n, to)?;
            }
        }
        self.out.get(from..to)
    }

    /// Decode stream `n` up to literal `to`, or to its end.
    #[expect(clippy::cast_possible_truncation, reason = "the shift leaves the bits of one code")]
    fn decode(&mut self, section: &[u8], n: usize, to: usize) -> Option<()> {
        let part = &mut self.parts[n];
        let end = part.end.min(to);
        if part.done >= end {
            return Some(());
        }
        let mut bits = Backward::new(section.get(part.bytes.0..part.bytes.1)?)?;
        bits.left = part.left;
        let cells = self.code.cells.as_slice().first_chunk::<{ 1 << MOST_BITS }>()?;
        let shift = Backward::MOST - self.code.log;
        let out = self.out.get_mut(part.done..end)?;
        let mut groups = out.chunks_exact_mut(AT_ONCE);
        for group in groups.by_ref() {
            let mut word = bits.peek(Backward::MOST);
            let mut used = 0;
            for to in group {
                let [symbol, length] = cells[(word >> shift) as usize % (1 << MOST_BITS)];
                word = (word << length) & ((1 << Backward::MOST) - 1);
                used += usize::from(length);
                *to = symbol;
            }
            bits.left = bits.left.checked_sub(used)?;
        }
        for to in groups.into_remainder() {
            let word = bits.peek(Backward::MOST);
            let [symbol, length] = cells[(word >> shift) as usize % (1 << MOST_BITS)];
            bits.left = bits.left.checked_sub(length.into())?;
            *to = symbol;
        }
        if end == part.end && bits.left != 0 {
            return None;
        }
        part.done = end;
        part.left = bits.left;
        Some(())
    }
}

impl Code {
    /// Become the code of these weights, the lightest of which have codes of `log` bits.
    fn build(&mut self, weights: &[u8], log: u32) -> Option<()> {
        self.log = log;
        let mut at = 0;
        for wanted in 1..=log {
            for (symbol, _) in weights.iter().enumerate().filter(|&(_, &weight)| u32::from(weight) == wanted) {
                let width = 1_usize << (wanted - 1);
                let cell = [u8::try_from(symbol).ok()?, u8::try_from(log + 1 - wanted).ok()?];
                self.cells.get_mut(at..at + width)?.fill(cell);
                at += width;
            }
        }
        (at == 1 << log).then_some(())
    }
}
