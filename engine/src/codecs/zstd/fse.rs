//! Tables of finite state entropy codes (FSE).
//!
//! A description gives each symbol a share of the table's cells; a cell says what symbol its state stands for, and the
//! next state: a base and the number of bits to add to it.
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 4.1.

#![expect(clippy::inline_always, reason = "what a reader calls is compiled for the same instructions as it")]

use super::bits::Forward;

/// The most symbols that an alphabet of sequences or weights has.
pub(super) const MOST_SYMBOLS: usize = 64;

/// One state: in 8, 8, 16 and 32 bits how many bits to add to the value, how many choose among the next states, the first of
/// these, and what the symbol stands for, less what extra bits add. In one word, so that inner loops hold it in a register.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell(u64);

impl Cell {
    #[inline]
    fn new(value: u32, base: u16, nbits: u8, extra: u8) -> Self {
        Self(u64::from(value) << 32 | u64::from(base) << 16 | u64::from(nbits) << 8 | u64::from(extra))
    }

    /// What the symbol stands for, less what extra bits add.
    #[inline(always)]
    pub(super) fn value(self) -> u64 {
        self.0 >> 32
    }

    /// First of the next states.
    #[inline(always)]
    pub(super) fn base(self) -> u64 {
        (self.0 >> 16) & 0xFFFF
    }

    /// Bits that choose among them.
    #[inline(always)]
    pub(super) fn nbits(self) -> u64 {
        (self.0 >> 8) & 0xFF
    }

    /// Bits to add to the value.
    #[inline(always)]
    pub(super) fn extra(self) -> u64 {
        self.0 & 0xFF
    }

    /// All bits of three cells: those to add to values, and those that choose among states.
    #[inline(always)]
    pub(super) fn widths(cells: [Self; 3]) -> (u64, u64) {
        // None of the sums is above 255.
        let sum = cells[0].0.wrapping_add(cells[1].0).wrapping_add(cells[2].0);
        (sum & 0xFF, (sum >> 8) & 0xFF)
    }
}

/// What each symbol stands for: a value, and the number of bits to add to it.
pub(super) type Meanings = &'static [(u32, u8)];

/// The most cells of a table.
const MOST_CELLS: usize = 512;

/// A decoding table.
#[derive(Debug)]
pub(super) struct Table {
    /// As many as 2 to the power of `log` count.
    cells: [Cell; MOST_CELLS],
    pub(super) log: u32,
}

impl Default for Table {
    fn default() -> Self {
        Self { cells: [Cell::default(); MOST_CELLS], log: 0 }
    }
}

/// The shares of an alphabet's symbols.
pub(super) struct Shares {
    /// Cells of each symbol, -1 for one with less than a cell.
    pub(super) counts: [i16; MOST_SYMBOLS],
    pub(super) log: u32,
}

impl Shares {
    /// Those of a known distribution.
    pub(super) fn of(known: &[i16], log: u32) -> Self {
        let mut counts = [0; MOST_SYMBOLS];
        for (to, from) in counts.iter_mut().zip(known) {
            *to = *from;
        }
        Self { counts, log }
    }

    /// Read a description of at most `most` for its log, and give what follows it.
    pub(super) fn read(bytes: &[u8], most: u32) -> Option<(Self, &[u8])> {
        let mut bits = Forward::new(bytes);
        let log = 5 + bits.peek(4);
        bits.skip(4);
        if log > most {
            return None;
        }
        let mut counts = [0; MOST_SYMBOLS];
        let mut remaining = 1_u32 << log;
        let mut symbol = 0;
        while remaining > 0 {
            // Of the values 0 to remaining + 1, the lowest take one bit less.
            let width = (remaining + 1).ilog2() + 1;
            let short = (1 << width) - 1 - (remaining + 1);
            let value = bits.peek(width);
            let lower = value & ((1 << (width - 1)) - 1);
            let value = if lower < short {
                bits.skip(width - 1);
                lower
            } else {
                bits.skip(width);
                if value > lower { value - short } else { value }
            };
            let share = i16::try_from(value).ok()? - 1;
            remaining = remaining.checked_sub(share.unsigned_abs().into())?;
            *counts.get_mut(symbol)? = share;
            symbol += 1;
            // Behind a symbol that does not occur stands how many more do not, three at a time.
            let mut more = share == 0;
            while more {
                let zeros = bits.peek(2);
                bits.skip(2);
                symbol += zeros as usize;
                more = zeros == 3;
                if symbol > MOST_SYMBOLS {
                    return None;
                }
            }
        }
        Some((Self { counts, log }, bits.rest()?))
    }
}

impl Table {
    /// The cell of a state.
    #[inline(always)]
    pub(super) fn cell(&self, state: u64) -> Cell {
        self.cells[usize::try_from(state).unwrap_or(0) % MOST_CELLS]
    }

    /// Become a table of one state, which takes no bits.
    pub(super) fn single(&mut self, symbol: usize, meanings: Meanings) -> Option<()> {
        let &(value, extra) = meanings.get(symbol)?;
        self.cells[0] = Cell::new(value, 0, 0, extra);
        self.log = 0;
        Some(())
    }

    /// Become the table of `shares`; None if a symbol means nothing.
    pub(super) fn build(&mut self, shares: &Shares, meanings: Meanings) -> Option<()> {
        let Shares { counts, log } = shares;
        let size = 1_usize << log;
        let cells = self.cells.get_mut(..size)?;
        self.log = *log;
        let mut symbols = [0_u8; MOST_CELLS];
        // What the cells of each symbol have in common, and the next number of one.
        let mut common = [0_u64; MOST_SYMBOLS];
        let mut next = [1_u32; MOST_SYMBOLS];
        let mut high = size;
        for (at, &count) in counts.iter().enumerate().filter(|&(_, &count)| count != 0) {
            let &(value, extra) = meanings.get(at)?;
            common[at] = Cell::new(value, 0, 0, extra).0;
            next[at] = u32::from(count.unsigned_abs());
            if count < 0 {
                high -= 1;
                symbols[high] = u8::try_from(at).ok()?;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &count) in (0_u8..).zip(counts).filter(|&(_, &count)| count > 0) {
            for _ in 0..count {
                symbols[at % MOST_CELLS] = symbol;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        if at != 0 {
            return None;
        }
        for (cell, &symbol) in cells.iter_mut().zip(&symbols) {
            let symbol = usize::from(symbol) % MOST_SYMBOLS;
            let number = next[symbol];
            next[symbol] = number + 1;
            let nbits = log.saturating_sub(number.checked_ilog2().unwrap_or(0));
            let base = (u64::from(number) << (nbits % 64)).wrapping_sub(size as u64) & 0xFFFF;
            *cell = Cell(common[symbol] | base << 16 | u64::from(nbits) << 8);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_that_gives_too_much_is_refused() {
        assert!(Shares::read(&[0xFF; 8], 9).is_none());
        assert!(Shares::read(&[], 9).is_none());
        assert!(Shares::read(&[0x00, 0x00, 0x00, 0x00], 9).is_none());
    }
}
