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
/// The largest log of a table for weights, and as many of them as a word holds in any case.
const MOST_WEIGHTS_LOG: u32 = 6;
const WEIGHTS_AT_ONCE: usize = 8;
/// The largest weight, and room for numbers by weight.
const MOST_WEIGHT: u8 = 11;
const WEIGHTS_ROOM: usize = 16;
const MOST_SYMBOLS: usize = 256;

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

/// A code by its first [`MOST_BITS`] bits: the symbol in 8 bits, and above it the code's length.
#[derive(Debug)]
struct Code {
    cells: Box<[u16; 1 << MOST_BITS]>,
    /// The length of all codes, if they have the same one.
    even: Option<usize>,
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
    /// Where its bytes are among those of the section, and how many bits of them are left.
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
        let code = Code { cells: Box::new([0; 1 << MOST_BITS]), even: None };
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
    #[inline(always)]
    fn open_tree<'a>(&mut self, section: &'a [u8]) -> Option<&'a [u8]> {
        let (&head, rest) = section.split_first()?;
        let mut weights = [0_u8; MOST_SYMBOLS];
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
        self.code.build(&mut weights, count)?;
        Some(rest)
    }

    /// Read weights from the first `length` of these bytes.
    #[inline(always)]
    fn read_weights(&mut self, bytes: &[u8], length: usize, weights: &mut [u8; MOST_SYMBOLS]) -> Option<usize> {
        let (shares, rest) = Shares::read(bytes, MOST_WEIGHTS_LOG)?;
        self.weights.build(&shares, WEIGHTS)?;
        let table = &self.weights;
        let mut bits = Backward::with_others(rest, length.checked_sub(bytes.len() - rest.len())?)?;
        let (mut this, mut other) = (bits.read(table.log.into())?, bits.read(table.log.into())?);
        let mut count = 0;
        // Two states take turns; when the bits are used up, the other one has the last symbol.
        while count < 254 {
            let mut word = bits.word();
            for _ in 0..WEIGHTS_AT_ONCE {
                let cell = table.cell(this);
                *weights.get_mut(count)? = u8::try_from(cell.value).ok()?;
                count += 1;
                let nbits = u64::from(cell.nbits);
                if bits.skip(nbits).is_none() {
                    *weights.get_mut(count)? = u8::try_from(table.cell(other).value).ok()?;
                    return Some(count + 1);
                }
                (this, other) = (other, u64::from(cell.base) + ((word >> 1) >> (63 - nbits % 64)));
                word <<= nbits % 64;
            }
        }
        None
    }

    /// Literals `from..to` of those coded in `section`.
    #[inline(always)]
    pub(super) fn get(&mut self, section: &[u8], from: usize, to: usize) -> Option<&[u8]> {
        for n in 0..self.nparts {
            if self.parts[n].begin < to && from < self.parts[n].end {
                self.decode(section, n, from, to)?;
            }
        }
        self.out.get(from..to)
    }

    /// Decode stream `n` up to literal `to`, or to its end; where codes are of one length, from literal `from` on.
    #[inline(always)]
    fn decode(&mut self, section: &[u8], n: usize, from: usize, to: usize) -> Option<()> {
        let part = &mut self.parts[n];
        let end = part.end.min(to);
        if part.done >= end {
            return Some(());
        }
        let mut bits = Backward::new(section.get(part.bytes.0..part.bytes.1)?)?;
        bits.left = part.left;
        let mut first = part.done;
        if let Some(length) = self.code.even {
            let skipped = from.saturating_sub(first);
            bits.left = bits.left.checked_sub(skipped * length)?;
            first += skipped;
        }
        let mut groups = self.out.get_mut(first..end)?.chunks_exact_mut(AT_ONCE);
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
        if self.code.even.is_none() {
            (part.done, part.left) = (end, bits.left);
        }
        Some(())
    }
}

impl Code {
    /// Become the code of the first `count` of these weights and of one more: the last symbol has what the others leave of a
    /// power of two.
    #[inline(always)]
    fn build(&mut self, weights: &mut [u8; MOST_SYMBOLS], count: usize) -> Option<()> {
        let (given, rest) = weights.split_at_mut_checked(count)?;
        if given.iter().copied().max()? > MOST_WEIGHT {
            return None;
        }
        let mut tally = [0_usize; WEIGHTS_ROOM];
        for &weight in &*given {
            tally[usize::from(weight) % WEIGHTS_ROOM] += 1;
        }
        let sum = (1..WEIGHTS_ROOM).map(|weight| tally[weight] << (weight - 1)).sum::<usize>();
        let log = sum.checked_ilog2()? + 1;
        let left = (1_usize << log) - sum;
        if log > MOST_BITS || !left.is_power_of_two() {
            return None;
        }
        let last = left.ilog2() + 1;
        *rest.first_mut()? = u8::try_from(last).ok()?;
        tally[last as usize % WEIGHTS_ROOM] += 1;
        // Symbols are ordered by weight, those of one weight in ascending order; behind them those that do not occur.
        let mut starts = [0_usize; WEIGHTS_ROOM];
        for weight in 2..WEIGHTS_ROOM {
            starts[weight] = starts[weight - 1] + tally[weight - 1];
        }
        starts[0] = MOST_SYMBOLS;
        let mut symbols = [0_u8; 2 * MOST_SYMBOLS];
        for (symbol, &weight) in (0..=u8::MAX).zip(&weights[..=count]) {
            let start = &mut starts[usize::from(weight) % WEIGHTS_ROOM];
            symbols[*start % (2 * MOST_SYMBOLS)] = symbol;
            *start += 1;
        }
        // The lightest have codes of `log` bits, and as many cells as there are longer beginnings of these.
        let (mut cells, mut symbols) = (&mut self.cells[..], &symbols[..]);
        for (weight, length) in (1..=log).zip((1..=u8::try_from(log).ok()?).rev()) {
            let (these, others) = symbols.split_at_checked(tally[weight as usize % WEIGHTS_ROOM])?;
            let each = 1 << (MOST_BITS - u32::from(length));
            let (here, rest) = cells.split_at_mut_checked(these.len() * each)?;
            match each {
                1 => repeat::<1>(here, these, length),
                2 => repeat::<2>(here, these, length),
                4 => repeat::<4>(here, these, length),
                8 => repeat::<8>(here, these, length),
                _ => {
                    for (cells, &symbol) in here.chunks_exact_mut(each).zip(these) {
                        let cell = u16::from_le_bytes([symbol, length]);
                        cells.as_chunks_mut::<16>().0.fill([cell; 16]);
                    }
                }
            }
            (cells, symbols) = (rest, others);
        }
        self.even = (tally[1] == 1 << log).then_some(log as usize);
        Some(())
    }

    /// What the first bits of `word` stand for.
    #[inline(always)]
    fn cell(&self, word: u64) -> [u8; 2] {
        self.cells[(word >> (64 - MOST_BITS)) as usize % (1 << MOST_BITS)].to_le_bytes()
    }
}

/// Give each of these symbols, whose codes have `length` bits, `N` cells.
#[inline(always)]
fn repeat<const N: usize>(cells: &mut [u16], symbols: &[u8], length: u8) {
    for (cells, &symbol) in cells.as_chunks_mut::<N>().0.iter_mut().zip(symbols) {
        *cells = [u16::from_le_bytes([symbol, length]); N];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Cells as RFC 8878 assigns codes: by weight, those of one weight in ascending order of symbols.
    fn plain(weights: &[u8]) -> Option<Vec<[u8; 2]>> {
        let sum: usize = weights.iter().map(|&weight| (1 << weight) >> 1).sum();
        let log = sum.checked_ilog2()? + 1;
        let left = (1_usize << log) - sum;
        if log > MOST_BITS || !left.is_power_of_two() {
            return None;
        }
        let last = u8::try_from(left.ilog2() + 1).unwrap();
        let all: Vec<u8> = weights.iter().copied().chain([last]).collect();
        let mut cells = Vec::new();
        for weight in 1..=u8::try_from(log).unwrap() {
            for (symbol, _) in all.iter().enumerate().filter(|&(_, &other)| other == weight) {
                let length = u8::try_from(log).unwrap() + 1 - weight;
                let cell = [u8::try_from(symbol).unwrap(), length];
                cells.extend(std::iter::repeat_n(cell, 1 << (MOST_BITS - u32::from(length))));
            }
        }
        Some(cells)
    }

    #[test]
    fn codes_are_those_that_are_assigned_step_by_step() {
        let mut random = Random::new(9);
        let mut below = |end: u64| (random.number() >> 33) % end;
        let mut code = Code { cells: Box::new([0; 1 << MOST_BITS]), even: None };
        let mut sound = 0;
        for round in 0..20_000 {
            let count = usize::try_from(below(255)).unwrap() >> (round % 6);
            let (most, kind) = (1 + below(12), below(3));
            let mut weights = [0; MOST_SYMBOLS];
            for weight in &mut weights[..count] {
                *weight = u8::try_from(if kind == 0 { 1 } else { below(most) * (kind - 1 + below(2)).min(1) }).unwrap();
            }
            // As many of the lightest as the sum needs to come to one less than a power of two, every other time.
            if let Some(count) = count.checked_sub(1)
                && round % 2 == 0
            {
                let sum: usize = weights[..count].iter().map(|&weight| (1 << weight) >> 1).sum();
                weights[count] = u8::from(sum.is_multiple_of(2));
            }
            let expected = plain(&weights[..count]);
            let outcome = code.build(&mut weights.clone(), count);
            assert_eq!(outcome.is_some(), expected.is_some(), "{:?}", &weights[..count]);
            let Some(expected) = expected else { continue };
            sound += 1;
            assert_eq!(expected.len(), 1 << MOST_BITS);
            for (n, cell) in (0_u64..).zip(&expected) {
                assert_eq!(code.cell(n << (64 - MOST_BITS)), *cell);
            }
            // Where nobody has the least weight, as no encoder leaves it, that goes unnoticed.
            let even = expected.iter().all(|cell| cell[1] == expected[0][1]) && weights[..count].contains(&1);
            assert_eq!(code.even, even.then_some(usize::from(expected[0][1])));
        }
        assert!(sound > 300, "{sound}");
    }

    #[test]
    fn a_code_of_255_symbols_and_one_more_is_the_largest() {
        let mut code = Code { cells: Box::new([0; 1 << MOST_BITS]), even: None };
        assert_eq!(code.build(&mut [1; MOST_SYMBOLS], 255), Some(()));
        assert_eq!(code.even, Some(8));
        assert_eq!(code.build(&mut [1; MOST_SYMBOLS], 256), None);
        assert_eq!(code.build(&mut [12; MOST_SYMBOLS], 1), None);
        assert_eq!(code.build(&mut [1; MOST_SYMBOLS], 0), None);
    }
}
