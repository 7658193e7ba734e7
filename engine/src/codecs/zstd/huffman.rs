//! Literals in a Huffman code, decoded as far as somebody wants them.
//!
//! ```text
//! tree | [jumps: 3 x u16] | stream 0 | stream 1 | stream 2 | stream 3
//! ```
//!
//! The streams have a quarter of the literals each, and one can be decoded without the others.
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 4.2.

#![expect(clippy::inline_always, reason = "what a reader calls is compiled for the same instructions as it")]

use super::bits::Backward;
use super::fse::{Meanings, Shares, Table};

/// The longest code, in bits.
const MOST_BITS: u32 = 11;
/// Symbols that a word holds in any case.
const AT_ONCE: usize = 5;
/// The largest log of a table for weights.
const MOST_WEIGHTS_LOG: u32 = 6;

/// A weight stands for itself.
const WEIGHTS: Meanings = &{
    let mut weights = [(0, 0); 64];
    let mut weight = 0_u32;
    while weight < 64 {
        weights[weight as usize] = (weight, 0);
        weight += 1;
    }
    weights
};

/// A code by its first bits: the symbol, and the code's length in bits.
#[derive(Debug)]
struct Code {
    cells: Box<[[u8; 2]; 1 << MOST_BITS]>,
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
        let code = Code { cells: Box::new([[0; 2]; 1 << MOST_BITS]), log: 0 };
        Self { code, weights: Table::default(), parts: [Part::default(); 4], nparts: 0, out: Vec::new() }
    }
}

impl Literals {
    /// Take `count` literals, coded in `section` in one stream or four.
    #[inline(always)]
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
    #[inline]
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
            (self.read_weights(rest, head.into(), &mut weights)?, rest.get(head.into()..)?)
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

    /// Read weights from the first `length` of these bytes.
    #[inline]
    fn read_weights(&mut self, bytes: &[u8], length: usize, weights: &mut [u8; 256]) -> Option<usize> {
        let (shares, rest) = Shares::read(bytes, MOST_WEIGHTS_LOG)?;
        self.weights.build(&shares, WEIGHTS)?;
        let table = &self.weights;
        let mut bits = Backward::with_others(rest, length.checked_sub(bytes.len() - rest.len())?)?;
        let mut states = [bits.read(table.log.into())?, bits.read(table.log.into())?];
        // Two states take turns; when the bits are used up, the other one has the last symbol.
        for count in 0..254 {
            let turn = count % 2;
            let cell = table.cell(states[turn]);
            weights[count] = u8::try_from(cell.value()).ok()?;
            let Some(more) = bits.read(cell.nbits()) else {
                weights[count + 1] = u8::try_from(table.cell(states[1 - turn]).value()).ok()?;
                return Some(count + 2);
            };
            states[turn] = cell.base() + more;
        }
        None
    }

    /// Literals `from..to` of those coded in `section`.
    #[inline(always)]
    pub(super) fn get(&mut self, section: &[u8], from: usize, to: usize) -> Option<&[u8]> {
        for n in 0..self.nparts {
            if self.parts[n].begin < to && from < self.parts[n].end {
                self.decode(section, n, to)?;
            }
        }
        self.out.get(from..to)
    }

    /// Decode stream `n` up to literal `to`, or to its end.
    #[inline(always)]
    fn decode(&mut self, section: &[u8], n: usize, to: usize) -> Option<()> {
        let part = &mut self.parts[n];
        let end = part.end.min(to);
        if part.done >= end {
            return Some(());
        }
        let mut bits = Backward::new(section.get(part.bytes.0..part.bytes.1)?)?;
        bits.left = part.left;
        let out = self.out.get_mut(part.done..end)?;
        let mut groups = out.chunks_exact_mut(AT_ONCE);
        for group in groups.by_ref() {
            let (mut word, mut used) = (bits.word(), 0);
            for to in group {
                let [symbol, length] = self.code.cell(word);
                word <<= length % 64;
                used += u64::from(length);
                *to = symbol;
            }
            bits.skip(used)?;
        }
        for to in groups.into_remainder() {
            let [symbol, length] = self.code.cell(bits.word());
            bits.skip(length.into())?;
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
    #[inline]
    fn build(&mut self, weights: &[u8], log: u32) -> Option<()> {
        self.log = log;
        // Symbols stand by weight, those of one weight in ascending order.
        let mut starts = [0_usize; MOST_BITS as usize + 2];
        for &weight in weights {
            *starts.get_mut(usize::from(weight) + 1)? += (1 << weight) >> 1;
        }
        for weight in 1..starts.len() {
            starts[weight] += starts[weight - 1];
        }
        if starts[starts.len() - 1] != 1 << log {
            return None;
        }
        for (symbol, &weight) in (0..=u8::MAX).zip(weights).filter(|&(_, &weight)| weight > 0) {
            let start = &mut starts[usize::from(weight)];
            let end = *start + (1 << (weight - 1));
            let cell = [symbol, u8::try_from(log + 1).ok()?.checked_sub(weight)?];
            self.cells.get_mut(*start..end)?.fill(cell);
            *start = end;
        }
        Some(())
    }

    /// What the first bits of `word` stand for.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the shift leaves the bits of one code")]
    fn cell(&self, word: u64) -> [u8; 2] {
        self.cells[(word >> ((64 - self.log) % 64)) as usize % (1 << MOST_BITS)]
    }
}
