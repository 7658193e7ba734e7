//! Tables of finite state entropy codes (FSE).
//!
//! A description gives each symbol a share of the table's cells; a cell says what symbol its state stands for, and the
//! next state: a base and the number of bits to add to it.
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 4.1.

use super::bits::Forward;

/// The most symbols that an alphabet of sequences or weights has.
pub(super) const MOST_SYMBOLS: usize = 64;

/// One state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// What the symbol stands for, less what extra bits add.
    pub(super) value: u32,
    /// First of the next states.
    pub(super) base: u16,
    /// Bits that choose among them.
    pub(super) nbits: u8,
    /// Bits to add to the value.
    pub(super) extra: u8,
}

/// What a symbol stands for: a value, and the number of bits to add to it.
pub(super) type Meaning = fn(usize) -> Option<(u32, u8)>;

/// A decoding table.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// As many as 2 to the power of `log`.
    pub(super) cells: Vec<Cell>,
    pub(super) log: u32,
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
    /// Become a table of one state, which takes no bits.
    pub(super) fn single(&mut self, symbol: usize, meaning: Meaning) -> Option<()> {
        let (value, extra) = meaning(symbol)?;
        self.cells.clear();
        self.cells.push(Cell { value, extra, ..Cell::default() });
        self.log = 0;
        Some(())
    }

    /// Become the table of `shares`; None if a symbol means nothing.
    pub(super) fn build(&mut self, shares: &Shares, meaning: Meaning) -> Option<()> {
        let Shares { counts, log } = shares;
        let size = 1_usize << log;
        self.log = *log;
        self.cells.clear();
        self.cells.resize(size, Cell::default());
        let mut symbols = [0_u8; 512];
        let symbols = symbols.get_mut(..size)?;
        let mut next = [0_u16; MOST_SYMBOLS];
        let mut meanings = [(0, 0); MOST_SYMBOLS];
        let mut high = size;
        for (symbol, &count) in (0_u8..).zip(counts) {
            let at = usize::from(symbol);
            if count != 0 {
                meanings[at] = meaning(at)?;
            }
            if count < 0 {
                high -= 1;
                symbols[high] = symbol;
            }
            next[at] = count.unsigned_abs();
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &count) in (0_u8..).zip(counts) {
            for _ in 0..count.max(0) {
                symbols[at] = symbol;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        if at != 0 {
            return None;
        }
        for (cell, &symbol) in self.cells.iter_mut().zip(symbols.iter()) {
            let (value, extra) = meanings[usize::from(symbol)];
            let next = &mut next[usize::from(symbol)];
            let nbits = log - u32::from(*next).ilog2();
            let base = (usize::from(*next) << nbits) - size;
            *cell = Cell { value, base: u16::try_from(base).ok()?, nbits: u8::try_from(nbits).ok()?, extra };
            *next += 1;
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
