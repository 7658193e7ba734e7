//! A few bytes out of the middle of a stream, without decoding the stream.
//!
//! ```text
//! frame      header | block header | literals | sequences
//! sequence   so many literals, then so many bytes from so far back
//! ```
//!
//! The sequences up to the bytes wanted are read, which says where each byte comes from, and executed for these bytes
//! alone: a byte that was copied is looked up where it was copied from, and so on back to a literal. Literals in a
//! Huffman code are decoded as far as one is wanted.
//!
//! Streams of one block without checksum and dictionary are read so, as are all that a chunk with default parameters
//! has. Others, and whatever looks damaged, are left to the library, which also says what is wrong; so is what would
//! take longer here: bytes that were copied from copies too often, and ranges that are made up of many sequences.
//!
//! Sequences before the bytes wanted must be read, for their lengths say where the next one is. What makes that
//! fast: no output, one load of bits for each, offsets used last resolved only where one is asked for.
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 3.

#![expect(clippy::inline_always, reason = "what a reader calls is compiled for the same instructions as it")]

use std::sync::LazyLock;

use super::bits::{Backward, low};
use super::fse::{Meanings, Shares, Table};
use super::huffman::Literals;
use crate::codecs::sequences::{Sequence, look_up, steps_for};
use crate::cpu::Isa;

const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Longest content of a block, in bytes.
const MOST_BLOCK: usize = 128 * 1024;
/// To find an offset used last takes looks at so many sequences at most, on an average of steps.
const LOOKS_PER_STEP: usize = 16;
/// A range of at most so many bytes, or one of so many parts of its stream, is worth reading any number of sequences for.
const SHORT: usize = 16;
const SHORT_PART: usize = 512;
/// The largest code of an offset.
const MOST_OFFSET_CODE: u8 = 31;

const LITERAL_LENGTHS: [i16; 36] =
    [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1];
const MATCH_LENGTHS: [i16; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];
const OFFSETS: [i16; 29] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];

/// Values and extra bits of the literal lengths from code 16 on; below, the code is the value.
const LONG_LITERALS: [(u32, u8); 20] = [
    (16, 1),
    (18, 1),
    (20, 1),
    (22, 1),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 4),
    (64, 6),
    (128, 7),
    (256, 8),
    (512, 9),
    (1024, 10),
    (2048, 11),
    (4096, 12),
    (8192, 13),
    (16384, 14),
    (32768, 15),
    (65536, 16),
];

/// Values and extra bits of the match lengths from code 32 on; below, the value is 3 more than the code.
const LONG_MATCHES: [(u32, u8); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1027, 10),
    (2051, 11),
    (4099, 12),
    (8195, 13),
    (16387, 14),
    (32771, 15),
    (65539, 16),
];

/// What the codes of literal lengths, match lengths and offsets stand for.
const OF_LITERAL_LENGTHS: Meanings = &short_and_long::<36, 20>(0, LONG_LITERALS);
const OF_MATCH_LENGTHS: Meanings = &short_and_long::<53, 21>(3, LONG_MATCHES);
const OF_OFFSETS: Meanings = &{
    let mut all = [(0, 0); MOST_OFFSET_CODE as usize + 1];
    let mut code = 0;
    while code <= MOST_OFFSET_CODE {
        all[code as usize] = (1 << code, code);
        code += 1;
    }
    all
};

/// Codes that stand for values from `least` on, and behind them those of `long`.
const fn short_and_long<const ALL: usize, const LONG: usize>(least: u32, long: [(u32, u8); LONG]) -> [(u32, u8); ALL] {
    let mut all = [(0, 0); ALL];
    let (mut at, mut value) = (0, least);
    while at < ALL {
        all[at] = if at < ALL - LONG { (value, 0) } else { long[at + LONG - ALL] };
        (at, value) = (at + 1, value + 1);
    }
    all
}

/// Which of the offsets used last a sequence uses again, 0 the latest; 3 for one less than the latest, None for a new one.
/// Offsets are 3 more than bytes; up to 3 they mean one of those used last.
#[inline(always)]
fn again(sequence: &Sequence) -> Option<u32> {
    (sequence.offset <= 3).then(|| (sequence.offset + u32::from(sequence.copied == sequence.start)).saturating_sub(1))
}

/// The offset of the last of these sequences. Most are never asked for theirs, so nobody keeps those used last. None if it
/// is further back than the `looks` that may be taken, of which this takes some.
fn offset_of(sequences: &[Sequence], looks: &mut usize) -> Option<usize> {
    // Looked for is what was at `recent` of those used last; less so much.
    let (mut recent, mut less) = (0, 0);
    for sequence in sequences.iter().rev() {
        *looks = looks.checked_sub(1)?;
        recent = match (again(sequence), recent) {
            (None, 0) => return (sequence.offset as usize - 3).checked_sub(less),
            (Some(3), 0) => {
                less += 1;
                0
            }
            (None | Some(3), _) => recent - 1,
            (Some(used), 0) => used,
            (Some(used), _) if recent <= used => recent - 1,
            _ => recent,
        };
    }
    [1_usize, 4, 8].get(recent as usize)?.checked_sub(less)
}

/// The tables of a block's sequences: of literal lengths, offsets, match lengths.
type Tables = [Table; 3];

/// Three states of the codes, and the bits that are left. Small and copied, so that loops hold it in registers.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bits: Backward<'a>,
    length: u64,
    offset: u64,
    copying: u64,
    start: u64,
    literals: u64,
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn new([lengths, distances, matches]: &Tables, section: &'a [u8]) -> Option<Self> {
        let mut bits = Backward::new(section)?;
        let length = bits.read(lengths.log.into())?;
        let offset = bits.read(distances.log.into())?;
        let copying = bits.read(matches.log.into())?;
        Some(Self { bits, length, offset, copying, start: 0, literals: 0 })
    }

    /// Read a sequence, and unless it is the last one the next states.
    #[inline(always)]
    fn next<const LAST: bool>(self, [lengths, distances, matches]: &Tables) -> Option<(Sequence, Self)> {
        // These bits are on their way before it is known how many of them are this sequence's.
        let word = self.bits.word();
        let l = lengths.cell(self.length);
        let o = distances.cell(self.offset);
        let m = matches.cell(self.copying);
        let extra = u64::from(l.extra) + u64::from(m.extra) + u64::from(o.extra);
        let below = u64::from(o.nbits) + u64::from(m.nbits);
        let next = if LAST { 0 } else { below + u64::from(l.nbits) };
        let mut bits = self.bits;
        bits.skip(extra + next)?;
        // All is cut out of one word, so that little waits for what is cut out before it. There is nothing above it.
        let (states, extras) = if extra + next > Backward::MOST {
            (bits.from(bits.left), bits.wide(next, extra)?)
        } else {
            let all = (word >> 1) >> (63 - extra - next);
            (all, all >> next)
        };
        let nliterals = u64::from(l.value) + low(extras, l.extra.into());
        let extras = extras >> (l.extra % 64);
        let ncopied = u64::from(m.value) + low(extras, m.extra.into());
        let offset = u64::from(o.value) + (extras >> (m.extra % 64));
        let copied = self.start + nliterals;
        let sequence = Sequence {
            start: half(self.start),
            copied: half(copied),
            offset: half(offset),
            literals: half(self.literals),
        };
        let (start, literals) = (copied + ncopied, self.literals + nliterals);
        if LAST {
            return Some((sequence, Self { bits, start, literals, ..self }));
        }
        let offset = u64::from(o.base) + low(states, o.nbits.into());
        let copying = u64::from(m.base) + low(states >> (o.nbits % 64), m.nbits.into());
        let length = u64::from(l.base) + low(states >> (below % 64), l.nbits.into());
        Some((sequence, Self { bits, length, offset, copying, start, literals }))
    }

    /// Read sequences, into all `slots` or until byte `to` is reached. Returns how many, and the state behind them.
    #[inline(always)]
    fn read(mut self, tables: &Tables, slots: &mut [Sequence], to: u64) -> Option<(usize, Self)> {
        let (last, others) = slots.split_last_mut()?;
        for (n, slot) in others.iter_mut().enumerate() {
            (*slot, self) = self.next::<false>(tables)?;
            if self.start >= to {
                return Some((n + 1, self));
            }
        }
        (*last, self) = self.next::<true>(tables)?;
        (self.bits.left == 0).then_some((others.len() + 1, self))
    }
}

/// Literals of a block.
#[derive(Debug, Clone, Copy)]
enum Section<'a> {
    Raw(&'a [u8]),
    Run(u8),
    /// In one stream, or in four.
    Coded(&'a [u8], bool),
}

/// A kind of code in sequences: its known distribution and that one's log, the largest log, and what it stands for.
struct Kind {
    known: &'static [i16],
    log: u32,
    most: u32,
    meanings: Meanings,
}

/// Literal lengths, offsets, match lengths.
const KINDS: [Kind; 3] = [
    Kind { known: &LITERAL_LENGTHS, log: 6, most: 9, meanings: OF_LITERAL_LENGTHS },
    Kind { known: &OFFSETS, log: 5, most: 8, meanings: OF_OFFSETS },
    Kind { known: &MATCH_LENGTHS, log: 6, most: 9, meanings: OF_MATCH_LENGTHS },
];

/// The tables of the known distributions.
static KNOWN: LazyLock<Option<Tables>> = LazyLock::new(|| {
    let mut tables = Tables::default();
    for (table, kind) in tables.iter_mut().zip(KINDS) {
        table.build(&Shares::of(kind.known, kind.log), kind.meanings)?;
    }
    Some(tables)
});

/// Make the tables of the known distributions.
pub(crate) fn prepare() {
    LazyLock::force(&KNOWN);
}

/// Make `tables` those that `modes` says, and give what follows their descriptions.
#[inline(always)]
fn open_tables<'a>(modes: u8, mut bytes: &'a [u8], tables: &mut Tables) -> Option<&'a [u8]> {
    for (n, (kind, table)) in KINDS.iter().zip(tables).enumerate() {
        match (modes >> (6 - 2 * n)) & 3 {
            0 => table.copy(&KNOWN.as_ref()?[n]),
            1 => {
                let (&symbol, rest) = bytes.split_first()?;
                table.single(symbol.into(), kind.meanings)?;
                bytes = rest;
            }
            2 => {
                let (shares, rest) = Shares::read(bytes, kind.most)?;
                table.build(&shares, kind.meanings)?;
                bytes = rest;
            }
            _ => return None, // that of an earlier block
        }
    }
    Some(bytes)
}

/// Scratch space for reading ranges.
#[derive(Debug, Default)]
pub(in super::super) struct Ranges {
    tables: Box<Tables>,
    literals: Literals,
    /// Those that were read, and what other streams have left behind them.
    sequences: Vec<Sequence>,
    nsequences: usize,
    /// Ranges that have yet to be looked up: where they come from, where they go, how many bytes.
    sought: Vec<(usize, usize, usize)>,
}

impl Ranges {
    /// Fill `dst` with the bytes from `from` on of the stream `src`, which has `full` bytes; None if that has to be
    /// left to the library. Damage elsewhere in the stream may go unnoticed.
    pub(in super::super) fn read(
        &mut self,
        isa: Isa,
        src: &[u8],
        full: usize,
        from: usize,
        dst: &mut [u8],
    ) -> Option<()> {
        let to = from.checked_add(dst.len()).filter(|&to| to <= full && full <= MOST_BLOCK)?;
        let (kind, size, content) = only_block(src, full)?;
        match kind {
            0 if size == full && content.len() == full => dst.copy_from_slice(&content[from..to]),
            1 if size == full && content.len() == 1 => dst.fill(content[0]),
            2 if size == content.len() => {
                #[cfg(target_arch = "x86_64")]
                if isa.has_avx2() {
                    #[expect(unsafe_code, reason = "the only step to code for BMI2")]
                    // SAFETY: an `Isa` with AVX2 exists only where detection found AVX2, BMI1, BMI2 and LZCNT.
                    return unsafe { self.read_coded_bmi2(content, full, from, dst) };
                }
                let _ = isa;
                self.read_coded(content, full, from, dst)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// The same code, compiled for instructions that cut bits out of words.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt")]
    fn read_coded_bmi2(&mut self, content: &[u8], full: usize, from: usize, dst: &mut [u8]) -> Option<()> {
        self.read_coded(content, full, from, dst)
    }

    #[inline(always)]
    fn read_coded(&mut self, content: &[u8], full: usize, from: usize, dst: &mut [u8]) -> Option<()> {
        let (section, count, rest) = literals_of(content)?;
        let short = dst.len() <= SHORT.max(full / SHORT_PART);
        // A longer range is worth it where sequences are longer still: bytes from more places are read faster by the library.
        let most = if short { usize::MAX } else { full / (2 * dst.len()) };
        self.read_sequences(rest, most, count, full, from + dst.len())?;
        if let Section::Coded(coded, four) = section {
            self.literals.open(coded, count, four)?;
        }
        self.look_up(section, from, dst)
    }

    /// Read up to `most` sequences until byte `to` of `full` is reached; there are `count` literals for all.
    #[inline(always)]
    fn read_sequences(&mut self, section: &[u8], most: usize, count: usize, full: usize, to: usize) -> Option<()> {
        let (number, rest) = match *section {
            [0] => (0, &[][..]),
            [low @ 1..=127, ref rest @ ..] => (usize::from(low), rest),
            [high @ 128..=254, low, ref rest @ ..] => ((usize::from(high - 128) << 8) + usize::from(low), rest),
            [255, low, high, ref rest @ ..] => ((usize::from(high) << 8) + usize::from(low) + 0x7F00, rest),
            _ => return None,
        };
        if number > most {
            return None;
        }
        let Self { tables, sequences, nsequences, .. } = self;
        if sequences.len() <= number {
            sequences.resize(number + 1, Sequence::default());
        }
        let slots = sequences.get_mut(..=number)?;
        let (mut start, mut literals) = (0, 0);
        if number > 0 {
            let (&modes, rest) = rest.split_first()?;
            let rest = open_tables(modes, rest, tables)?;
            let reader = Reader::new(tables, rest)?;
            (*nsequences, Reader { start, literals, .. }) = reader.read(tables, &mut slots[..number], to as u64)?;
            if start >= to as u64 {
                return (start <= full as u64 && literals <= count as u64).then_some(());
            }
        }
        // What is left of the literals.
        if literals > count as u64 || start + count as u64 != full as u64 + literals {
            return None;
        }
        slots[number] = Sequence { start: half(start), copied: half(full as u64), offset: 0, literals: half(literals) };
        *nsequences = number + 1;
        Some(())
    }

    /// Find the bytes from `from` on where they come from; None after too many steps.
    #[inline(always)]
    fn look_up(&mut self, section: Section<'_>, from: usize, dst: &mut [u8]) -> Option<()> {
        let Self { literals, sequences, nsequences, sought, .. } = self;
        let sequences = &sequences[..*nsequences];
        let mut looks = steps_for(sequences.len()) * LOOKS_PER_STEP;
        look_up(
            sequences,
            from,
            dst,
            sought,
            |sequences| offset_of(sequences, &mut looks),
            |first, found| {
                let last = first + found.len();
                match section {
                    Section::Raw(plain) => found.copy_from_slice(plain.get(first..last)?),
                    Section::Run(value) => found.fill(value),
                    Section::Coded(coded, _) => found.copy_from_slice(literals.get(coded, first, last)?),
                }
                Some(())
            },
        )
    }
}

/// The literals of a block, their number, and what follows them.
fn literals_of(content: &[u8]) -> Option<(Section<'_>, usize, &[u8])> {
    let head = u64::from_le_bytes(*content.first_chunk::<8>().or(padded(content).as_ref())?);
    let format = (head >> 2) & 3;
    let number = |from: u32, count: u32| usize::try_from((head >> from) & ((1 << count) - 1)).unwrap_or(0);
    if head & 3 < 2 {
        let (length, count) = match format {
            0 | 2 => (1, number(3, 5)),
            1 => (2, number(4, 12)),
            _ => (3, number(4, 20)),
        };
        let rest = content.get(length..)?;
        if head & 3 == 1 {
            let (&value, rest) = rest.split_first()?;
            return Some((Section::Run(value), count, rest));
        }
        let (plain, rest) = rest.split_at_checked(count)?;
        return Some((Section::Raw(plain), count, rest));
    }
    if head & 3 == 3 {
        return None; // the tree is that of an earlier block
    }
    let (length, width) = match format {
        0 | 1 => (3, 10),
        2 => (4, 14),
        _ => (5, 18),
    };
    let (count, size) = (number(4, width), number(4 + width, width));
    let (coded, rest) = content.get(length..)?.split_at_checked(size)?;
    if count > MOST_BLOCK {
        return None;
    }
    Some((Section::Coded(coded, format != 0), count, rest))
}

/// Short content with zeros behind it.
fn padded(content: &[u8]) -> Option<[u8; 8]> {
    let mut word = [0; 8];
    word.get_mut(..content.len())?.copy_from_slice(content);
    Some(word)
}

/// Kind, size and content of the block that a frame of `full` bytes consists of.
fn only_block(src: &[u8], full: usize) -> Option<(u32, usize, &[u8])> {
    let rest = src.strip_prefix(&MAGIC)?;
    let (&descriptor, rest) = rest.split_first()?;
    // Neither a dictionary nor a checksum, nor what is reserved.
    if descriptor & 0b0000_1111 != 0 {
        return None;
    }
    let single = descriptor & 0b0010_0000 != 0;
    let rest = if single { rest } else { rest.get(1..)? };
    let (size, rest) = match descriptor >> 6 {
        0 if single => (u64::from(*rest.first()?), rest.get(1..)?),
        0 => return None,
        1 => (u64::from(u16::from_le_bytes(*rest.first_chunk()?)) + 256, rest.get(2..)?),
        2 => (u64::from(u32::from_le_bytes(*rest.first_chunk()?)), rest.get(4..)?),
        _ => (u64::from_le_bytes(*rest.first_chunk()?), rest.get(8..)?),
    };
    let &[a, b, c] = rest.first_chunk::<3>()?;
    let head = u32::from_le_bytes([a, b, c, 0]);
    if size != full as u64 || head & 1 == 0 {
        return None;
    }
    Some(((head >> 1) & 3, (head >> 3) as usize, rest.get(3..)?))
}

/// The lower half of a word.
#[inline(always)]
fn half(word: u64) -> u32 {
    u32::try_from(word & 0xFFFF_FFFF).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
    use super::*;
    use crate::testing::Random;
    use proptest::prelude::*;

    #[test]
    fn known_distributions_fill_their_tables() {
        for (known, log) in [(&LITERAL_LENGTHS[..], 6), (&MATCH_LENGTHS[..], 6), (&OFFSETS[..], 5)] {
            assert_eq!(known.iter().map(|share| share.unsigned_abs()).sum::<u16>(), 1 << log);
        }
    }

    /// Bytes of many kinds: noise of some bits, noise among repetitions, ramps, runs, text, repetitions of long ago.
    fn sample(kind: u8, length: usize, seed: u64) -> Vec<u8> {
        let mut source = Random::new(seed | 1);
        let mut random = move || (source.number() >> 33) as usize;
        let byte = |number: usize| number.to_le_bytes()[0];
        let mut out: Vec<u8> = Vec::with_capacity(length);
        while out.len() < length {
            match kind {
                0 => out.push(byte(random() % 100)),
                1 => out.push(byte((random() % 16).pow(2) + random() % 3)),
                2 => out.push(byte(out.len() / 3)),
                3 => out.extend(std::iter::repeat_n(byte(random()), random() % 300)),
                4 => out.extend(format!("{} and {}, ", random() % 50, random() % 9).into_bytes()),
                5 if out.len() > 100 && random() % 4 > 0 => {
                    let from = random() % out.len();
                    let count = (random() % 40 + 3).min(out.len() - from);
                    out.extend_from_within(from..from + count);
                }
                5 => out.extend((0..random() % 30).map(|_| byte(random()))),
                6 => out.push(if random() % 50 == 0 { byte(random()) } else { 7 }),
                _ => out.push(byte(random())),
            }
        }
        out.truncate(length);
        out
    }

    fn encoded(src: &[u8], clevel: u8) -> Vec<u8> {
        let mut coded = vec![0; src.len() + 1000];
        let mut encoder = Encoder::new(clevel, None).unwrap();
        let length = encoder.encode(encoder.candidates() - 1, src, &mut coded).unwrap();
        coded.truncate(length);
        coded
    }

    #[test]
    fn every_byte_of_a_stream_can_be_read_alone() {
        let mut ranges = Ranges::default();
        let (mut all, mut read) = (0, 0);
        for kind in 0..8 {
            for length in [1, 5, 100, 1000, 9000, 65_536, MOST_BLOCK] {
                for clevel in [1, 5, 9] {
                    let src = sample(kind, length, 5);
                    let coded = encoded(&src, clevel);
                    for at in (0..length).step_by(length / 40 + 1).chain([length - 1]) {
                        let mut found = [0];
                        all += 1;
                        if ranges.read(Isa::detect(), &coded, length, at, &mut found).is_some() {
                            assert_eq!(found[0], src[at], "kind {kind}, byte {at} of {length} at level {clevel}");
                            read += 1;
                        }
                    }
                }
            }
        }
        assert!(read > all / 3, "{read} of {all}");
    }

    #[test]
    fn noise_in_a_code_ramps_and_plain_noise_are_read_without_the_library() {
        let mut ranges = Ranges::default();
        for kind in [0, 2, 7] {
            let src = sample(kind, 65_536, 5);
            let coded = encoded(&src, 3);
            for at in (0..65_536).step_by(777) {
                let mut found = [0; 10];
                let outcome = ranges.read(Isa::detect(), &coded, src.len(), at, &mut found[..10.min(src.len() - at)]);
                assert_eq!(outcome, Some(()), "kind {kind}, byte {at}");
            }
        }
    }

    #[test]
    fn one_of_many_sequences_is_read_without_the_library() {
        let mut ranges = Ranges::default();
        let src = sample(5, 65_536, 5);
        let coded = encoded(&src, 5);
        let mut read = 0;
        for at in (0..65_536 - 10).step_by(777) {
            let mut found = [0; 10];
            if ranges.read(Isa::detect(), &coded, src.len(), at, &mut found).is_some() {
                assert_eq!(found, src[at..at + 10], "byte {at}");
                read += 1;
            }
        }
        assert!(ranges.nsequences > 2000 && read > 80, "{read} reads, {} sequences", ranges.nsequences);
    }

    #[test]
    fn offsets_used_last_are_found_again() {
        // What RFC 8878 says, step by step, against looking back.
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut recent, mut sequences) = ([1_u32, 4, 8], Vec::new());
            for _ in 0..20 {
                let state = random.number();
                let (offset, literals) = (1 + (state >> 33) as u32 % 5, (state >> 40) as u32 % 2);
                let offset = if offset > 3 { offset + (state >> 45) as u32 % 1000 } else { offset };
                let [first, second, third] = recent;
                recent = match if offset > 3 { 5 } else { offset + u32::from(literals == 0) } {
                    1 => recent,
                    2 => [second, first, third],
                    3 => [third, first, second],
                    4 => [first.wrapping_sub(1), first, second],
                    _ => [offset - 3, first, second],
                };
                sequences.push(Sequence { start: 0, copied: literals, offset, literals: 0 });
                let found = offset_of(&sequences, &mut 20);
                if recent.iter().all(|&offset| (1..2000).contains(&offset)) {
                    assert_eq!(found, Some(recent[0] as usize), "{sequences:?}");
                } else {
                    break;
                }
            }
        }
    }

    #[test]
    fn what_the_library_is_left_with() {
        let mut ranges = Ranges::default();
        let src = sample(5, MOST_BLOCK + 1, 5);
        let mut found = [0; 4];
        assert_eq!(ranges.read(Isa::detect(), &encoded(&src, 5), src.len(), 7, &mut found), None);
        let src = sample(2, 5000, 5);
        let coded = encoded(&src, 5);
        assert_eq!(ranges.read(Isa::detect(), &coded, 5000, 4996, &mut found), Some(()));
        assert_eq!(ranges.read(Isa::detect(), &coded, 5000, 4997, &mut found), None);
        assert_eq!(ranges.read(Isa::detect(), &coded, 4999, 7, &mut found), None);
        assert_eq!(ranges.read(Isa::detect(), &[], 5000, 7, &mut found), None);
        for bit in [0, 1, 2, 3, 6] {
            let mut other = coded.clone();
            other[4] ^= 1 << bit;
            assert_eq!(ranges.read(Isa::detect(), &other, 5000, 7, &mut found), None, "bit {bit} of the descriptor");
        }
    }

    proptest! {
        #[test]
        fn a_range_is_a_part_of_the_whole(
            kind in 0_u8..8,
            length in 1_usize..70_000,
            seed in any::<u64>(),
            clevel in 1_u8..10,
            from in any::<prop::sample::Index>(),
            count in any::<prop::sample::Index>(),
        ) {
            let src = sample(kind, length, seed);
            let coded = encoded(&src, clevel);
            let from = from.index(length);
            let mut found = vec![0; count.index(length - from) + 1];
            for isa in Isa::available() {
                found.fill(0);
                if Ranges::default().read(isa, &coded, length, from, &mut found).is_some() {
                    prop_assert_eq!(&found[..], &src[from..from + found.len()], "{}", isa.name());
                }
            }
        }

        #[test]
        fn damage_is_noticed_or_does_not_matter(
            kind in 0_u8..8,
            seed in any::<u64>(),
            at in any::<prop::sample::Index>(),
            with in 1_u8..=255,
            from in 0_usize..20_000,
        ) {
            let src = sample(kind, 20_000, seed);
            let mut coded = encoded(&src, 5);
            let at = at.index(coded.len());
            coded[at] ^= with;
            let mut whole = vec![0; src.len()];
            let fine = super::super::Decoder::new().unwrap().decode(&coded, &mut whole, None).is_ok();
            let mut found = [0; 9];
            let to = (from + 9).min(src.len());
            let found = &mut found[..to - from];
            if Ranges::default().read(Isa::detect(), &coded, src.len(), from, found).is_some() && fine {
                prop_assert_eq!(&*found, &whole[from..to]);
            }
        }
    }
}
