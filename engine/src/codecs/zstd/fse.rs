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

/// One state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// What the symbol stands for, less what extra bits add.
    pub(super) value: u32,
    /// First of the next states.
    pub(super) base: u16,
    /// How many bits choose among them.
    pub(super) nbits: u8,
    /// How many bits to add to the value.
    pub(super) extra: u8,
}

/// What each symbol stands for: a value, and the number of bits to add to it.
pub(super) type Meanings = &'static [(u32, u8)];

/// The most cells of a table.
const MOST_CELLS: usize = 512;
/// Cells that are given to a symbol at once, needed or not.
const SIDE: usize = 16;

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
    counts: [i16; MOST_SYMBOLS],
    /// No symbol from here on has any.
    nsymbols: usize,
    log: u32,
}

impl Shares {
    /// Those of a known distribution.
    pub(super) fn of(known: &[i16], log: u32) -> Self {
        let mut counts = [0; MOST_SYMBOLS];
        for (to, from) in counts.iter_mut().zip(known) {
            *to = *from;
        }
        Self { counts, nsymbols: known.len().min(MOST_SYMBOLS), log }
    }

    /// Read a description of at most `most` for its log, and give what follows it.
    #[inline(always)]
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
            // Behind a symbol that does not occur is how many more do not, three at a time.
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
        Some((Self { counts, nsymbols: symbol.min(MOST_SYMBOLS), log }, bits.rest()?))
    }
}

impl Table {
    /// The cell of a state.
    #[inline(always)]
    pub(super) fn cell(&self, state: u64) -> Cell {
        self.cells[usize::try_from(state).unwrap_or(0) % MOST_CELLS]
    }

    /// Become the same as `other`.
    #[inline(always)]
    pub(super) fn copy(&mut self, other: &Self) {
        let size = (1 << other.log) % (MOST_CELLS + 1);
        self.cells[..size].copy_from_slice(&other.cells[..size]);
        self.log = other.log;
    }

    /// Become a table of one state, which takes no bits.
    pub(super) fn single(&mut self, symbol: usize, meanings: Meanings) -> Option<()> {
        let &(value, extra) = meanings.get(symbol)?;
        self.cells[0] = Cell { value, base: 0, nbits: 0, extra };
        self.log = 0;
        Some(())
    }

    /// Become the table of `shares`; None if a symbol means nothing.
    #[inline(always)]
    pub(super) fn build(&mut self, shares: &Shares, meanings: Meanings) -> Option<()> {
        let Shares { counts, nsymbols, log } = shares;
        let size = 1_usize << log;
        let cells = self.cells.get_mut(..size)?;
        self.log = *log;
        // What the cells of each symbol have in common, and the next number of one.
        let mut kinds = [(0_u32, 0_u8, 0_u32); MOST_SYMBOLS];
        // Symbols as often as they have cells, one after the other; those with less than a cell have the last cells.
        let mut line = [0_u8; MOST_CELLS + SIDE];
        let (mut done, mut high) = (0, size);
        let mut symbols = [0_u8; MOST_CELLS];
        for (at, (&count, kind)) in counts.iter().zip(&mut kinds).take(*nsymbols).enumerate() {
            if count == 0 {
                continue;
            }
            let &(value, extra) = meanings.get(at)?;
            *kind = (value, extra, count.unsigned_abs().into());
            let symbol = u8::try_from(at).ok()?;
            if count < 0 {
                high = high.checked_sub(1)?;
                symbols[high % MOST_CELLS] = symbol;
                continue;
            }
            // Most have few: these are written at once, with some more that the next ones write over.
            let end = done + usize::from(count.unsigned_abs());
            line.get_mut(done..done + SIDE)?.fill(symbol);
            if end > done + SIDE {
                line.get_mut(done..end)?.fill(symbol);
            }
            done = end;
        }
        if done != high {
            return None;
        }
        // Steps lead to each cell once.
        let step = (size >> 1) + (size >> 3) + 3;
        let (mut at, mut next) = (0, 0);
        for _ in 0..size {
            let free = at < high;
            let cell = &mut symbols[at % MOST_CELLS];
            *cell = if free { line[next % MOST_CELLS] } else { *cell };
            next += usize::from(free);
            at = (at + step) & (size - 1);
        }
        // States of a symbol have ascending numbers. From both ends at once: who counts up need not wait for who counts down.
        let mut highest = kinds.map(|(_, _, count)| 2 * count);
        let cell = |value: u32, extra: u8, number: u32| {
            let [nbits, ..] = log.saturating_sub(number.checked_ilog2().unwrap_or(0)).to_le_bytes();
            let [low, high, ..] = (number << (nbits % 32)).wrapping_sub(1 << log).to_le_bytes();
            Cell { value, base: u16::from_le_bytes([low, high]), nbits, extra }
        };
        let (symbols, _) = symbols.split_at(size);
        let (lower, upper) = cells.split_at_mut(size / 2);
        let (lower_symbols, upper_symbols) = symbols.split_at(size / 2);
        let ups = lower.iter_mut().zip(lower_symbols);
        let downs = upper.iter_mut().zip(upper_symbols).rev();
        for ((up, &first), (down, &last)) in ups.zip(downs) {
            let (value, extra, next) = &mut kinds[usize::from(first) % MOST_SYMBOLS];
            *up = cell(*value, *extra, *next);
            *next += 1;
            let (value, extra, _) = kinds[usize::from(last) % MOST_SYMBOLS];
            let before = &mut highest[usize::from(last) % MOST_SYMBOLS];
            *before -= 1;
            *down = cell(value, extra, *before);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// What RFC 8878 says, step by step: the symbol of each state, the first of its next states and the bits to add.
    fn plain(shares: &Shares) -> Vec<(usize, u16, u8)> {
        let size = 1 << shares.log;
        let mut symbols = vec![0; size];
        let mut high = size;
        for (symbol, _) in shares.counts.iter().enumerate().filter(|&(_, &count)| count < 0) {
            high -= 1;
            symbols[high] = symbol;
        }
        let mut at = 0;
        for (symbol, &count) in shares.counts.iter().enumerate() {
            for _ in 0..count.max(0) {
                symbols[at] = symbol;
                loop {
                    at = (at + (size >> 1) + (size >> 3) + 3) % size;
                    if at < high {
                        break;
                    }
                }
            }
        }
        let mut next = shares.counts.map(|count| u32::from(count.unsigned_abs()));
        let cells = symbols.iter().map(|&symbol| {
            let number = next[symbol];
            next[symbol] += 1;
            let nbits = shares.log - number.ilog2();
            let base = (usize::try_from(number).unwrap() << nbits) - size;
            (symbol, u16::try_from(base).unwrap(), u8::try_from(nbits).unwrap())
        });
        cells.collect()
    }

    #[test]
    fn tables_are_those_that_are_built_step_by_step() {
        const MEANINGS: Meanings = &[(7, 3); MOST_SYMBOLS];
        let mut random = Random::new(5);
        let mut below = |end: u64| (random.number() >> 33) % end;
        let mut table = Table::default();
        for round in 0..500 {
            let log = 5 + u32::try_from(below(5)).unwrap();
            let mut shares = Shares { counts: [0; MOST_SYMBOLS], nsymbols: MOST_SYMBOLS, log };
            let mut left = 1_i16 << log;
            while left > 0 {
                let symbol = usize::try_from(below(MOST_SYMBOLS as u64)).unwrap();
                let most = if round % 2 == 0 { 3 } else { left };
                if shares.counts[symbol] == 0 {
                    let share = (i16::try_from(below(200)).unwrap() % most.min(left) + 1).min(left);
                    let rare = share == 1 && below(2) == 0;
                    shares.counts[symbol] = if rare { -1 } else { share };
                    left -= share;
                } else if shares.counts.iter().all(|&count| count != 0) {
                    let symbol = shares.counts.iter().position(|&count| count > 0).unwrap();
                    shares.counts[symbol] += left;
                    left = 0;
                }
            }
            table.build(&shares, MEANINGS).unwrap();
            for (state, (symbol, base, nbits)) in (0..).zip(plain(&shares)) {
                let Cell { value, base: found, nbits: bits, extra } = table.cell(state);
                assert_eq!((value, extra, found, bits), (7, 3, base, nbits), "state {state}, symbol {symbol}");
            }
        }
    }

    #[test]
    fn shares_that_leave_cells_are_refused() {
        let mut shares = Shares { counts: [0; MOST_SYMBOLS], nsymbols: MOST_SYMBOLS, log: 5 };
        shares.counts[3] = 31;
        assert!(Table::default().build(&shares, &[(0, 0); MOST_SYMBOLS]).is_none());
        shares.counts[4] = -1;
        assert!(Table::default().build(&shares, &[(0, 0); MOST_SYMBOLS]).is_some());
        assert!(Table::default().build(&shares, &[(0, 0); 4]).is_none());
    }

    #[test]
    fn a_description_that_gives_too_much_is_refused() {
        assert!(Shares::read(&[0xFF; 8], 9).is_none());
        assert!(Shares::read(&[], 9).is_none());
        assert!(Shares::read(&[0x00, 0x00, 0x00, 0x00], 9).is_none());
    }
}
