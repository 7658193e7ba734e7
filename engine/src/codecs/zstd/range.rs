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
//! take longer here: bytes that were copied from copies too often, and many sequences.
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 3.

use super::bits::Backward;
use super::fse::{Meaning, Shares, Table};
use super::huffman::Literals;

const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Longest content of a block, in bytes.
const MOST_BLOCK: usize = 128 * 1024;
/// One step from a byte to where it was copied from takes about as long as reading so many sequences.
const SEQUENCES_PER_STEP: usize = 2;
const LEAST_STEPS: usize = 64;
/// More sequences than these are read faster by the library, with all that it does besides.
const MOST_SEQUENCES: usize = 512;
/// With more sequences than that, literals in a code are wanted everywhere.
const MOST_WITH_CODE: usize = 64;
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

fn literal_length(code: usize) -> Option<(u32, u8)> {
    match code.checked_sub(16) {
        Some(long) => LONG_LITERALS.get(long).copied(),
        None => Some((u32::try_from(code).ok()?, 0)),
    }
}

fn match_length(code: usize) -> Option<(u32, u8)> {
    match code.checked_sub(32) {
        Some(long) => LONG_MATCHES.get(long).copied(),
        None => Some((u32::try_from(code).ok()? + 3, 0)),
    }
}

fn offset(code: usize) -> Option<(u32, u8)> {
    let extra = u8::try_from(code).ok().filter(|&extra| extra <= MOST_OFFSET_CODE)?;
    Some((1 << extra, extra))
}

/// Where the bytes of the stream from `start` on come from.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    /// First byte, a literal if there are any.
    start: u32,
    /// First byte that is copied.
    copied: u32,
    /// From so far back, in bytes.
    offset: u32,
    /// Literals before those of this sequence.
    literals: u32,
}

/// Literals of a block.
#[derive(Debug, Clone, Copy)]
enum Section<'a> {
    Plain(&'a [u8]),
    Run(u8),
    /// In one stream, or in four.
    Coded(&'a [u8], bool),
}

/// Scratch space for reading ranges.
#[derive(Debug, Default)]
pub(in super::super) struct Ranges {
    literal_lengths: Table,
    offsets: Table,
    match_lengths: Table,
    literals: Literals,
    sequences: Vec<Sequence>,
    /// Ranges that have yet to be looked up: where they come from, where they go, how many bytes.
    sought: Vec<(usize, usize, usize)>,
}

impl Ranges {
    /// Fill `dst` with the bytes from `from` on of the stream `src`, which has `full` bytes; None if that has to be
    /// left to the library. Damage elsewhere in the stream may go unnoticed.
    pub(in super::super) fn read(&mut self, src: &[u8], full: usize, from: usize, dst: &mut [u8]) -> Option<()> {
        let to = from.checked_add(dst.len()).filter(|&to| to <= full && full <= MOST_BLOCK)?;
        let (kind, size, content) = only_block(src, full)?;
        match kind {
            0 if size == full && content.len() == full => dst.copy_from_slice(&content[from..to]),
            1 if size == full && content.len() == 1 => dst.fill(content[0]),
            2 if size == content.len() => {
                let (section, count, rest) = literals_of(content)?;
                let most = if let Section::Coded(..) = section { MOST_WITH_CODE } else { MOST_SEQUENCES };
                self.read_sequences(rest, most, count, full, to)?;
                if let Section::Coded(coded, four) = section {
                    self.literals.open(coded, count, four)?;
                }
                self.look_up(section, from, dst)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Read up to `most` sequences until byte `to` of `full` is reached; there are `count` literals for all.
    fn read_sequences(&mut self, section: &[u8], most: usize, count: usize, full: usize, to: usize) -> Option<()> {
        self.sequences.clear();
        let (number, rest) = match *section {
            [0] => (0, &[][..]),
            [low @ 1..=127, ref rest @ ..] => (usize::from(low), rest),
            [high @ 128..=254, low, ref rest @ ..] => ((usize::from(high - 128) << 8) + usize::from(low), rest),
            [255, low, high, ref rest @ ..] => ((usize::from(high) << 8) + usize::from(low) + 0x7F00, rest),
            _ => return None,
        };
        let (mut start, mut literals) = (0_u32, 0_u32);
        if number > most {
            return None;
        }
        if number > 0 {
            let (&modes, rest) = rest.split_first()?;
            let rest =
                open_table(&mut self.literal_lengths, modes >> 6, rest, (&LITERAL_LENGTHS, 6, 9), literal_length)?;
            let rest = open_table(&mut self.offsets, (modes >> 4) & 3, rest, (&OFFSETS, 5, 8), offset)?;
            let rest =
                open_table(&mut self.match_lengths, (modes >> 2) & 3, rest, (&MATCH_LENGTHS, 6, 9), match_length)?;
            let mut bits = Backward::new(rest)?;
            let tables = [&self.literal_lengths, &self.offsets, &self.match_lengths];
            let [lengths, offsets, matches] = tables.map(|table| table.cells.as_slice());
            let [mut length, mut far, mut copying] = [0; 3];
            for (state, table) in [&mut length, &mut far, &mut copying].into_iter().zip(tables) {
                *state = usize::try_from(bits.read(table.log)?).ok()?;
            }
            let mut recent = [1_u32, 4, 8];
            for left in (0..number).rev() {
                let (l, o, m) = (lengths.get(length)?, offsets.get(far)?, matches.get(copying)?);
                let extra = bits.read(u32::from(l.extra) + u32::from(o.extra) + u32::from(m.extra))?;
                let below = |count: u32, skip: u32| u32::try_from((extra >> skip) & ((1 << count) - 1)).unwrap_or(0);
                let nliterals = l.value + below(l.extra.into(), 0);
                let ncopied = m.value + below(m.extra.into(), l.extra.into());
                let value = o.value + below(o.extra.into(), u32::from(l.extra) + u32::from(m.extra));
                let back = if value > 3 {
                    recent = [value - 3, recent[0], recent[1]];
                    value - 3
                } else {
                    repeated(&mut recent, value, nliterals == 0)
                };
                let copied = start + nliterals;
                if back == 0 || back > copied {
                    return None;
                }
                self.sequences.push(Sequence { start, copied, offset: back, literals });
                start = copied + ncopied;
                literals += nliterals;
                if start as usize > full || literals as usize > count {
                    return None;
                }
                if start as usize >= to {
                    return Some(());
                }
                if left > 0 {
                    let next = bits.read(u32::from(l.nbits) + u32::from(m.nbits) + u32::from(o.nbits))?;
                    let below =
                        |count: u32, skip: u32| usize::try_from((next >> skip) & ((1 << count) - 1)).unwrap_or(0);
                    far = usize::from(o.base) + below(o.nbits.into(), 0);
                    copying = usize::from(m.base) + below(m.nbits.into(), o.nbits.into());
                    length = usize::from(l.base) + below(l.nbits.into(), u32::from(o.nbits) + u32::from(m.nbits));
                }
            }
            if bits.left != 0 {
                return None;
            }
        }
        // What is left of the literals.
        if start as usize + count != full + literals as usize {
            return None;
        }
        self.sequences.push(Sequence { start, copied: u32::try_from(full).ok()?, offset: 0, literals });
        Some(())
    }

    /// Find the bytes from `from` on where they come from; None after too many steps.
    fn look_up(&mut self, section: Section<'_>, from: usize, dst: &mut [u8]) -> Option<()> {
        let Self { literals, sequences, sought, .. } = self;
        let mut steps = LEAST_STEPS + sequences.len() / SEQUENCES_PER_STEP;
        sought.clear();
        sought.push((from, 0, dst.len()));
        while let Some((mut at, mut to, mut length)) = sought.pop() {
            while length > 0 {
                steps = steps.checked_sub(1)?;
                let next = sequences.partition_point(|sequence| sequence.start as usize <= at);
                let Sequence { start, copied, offset, literals: before } = *sequences.get(next.checked_sub(1)?)?;
                let (start, copied, offset) = (start as usize, copied as usize, offset as usize);
                if at < copied {
                    let step = length.min(copied - at);
                    let first = before as usize + at - start;
                    let found = dst.get_mut(to..to + step)?;
                    match section {
                        Section::Plain(plain) => found.copy_from_slice(plain.get(first..first + step)?),
                        Section::Run(value) => found.fill(value),
                        Section::Coded(coded, _) => found.copy_from_slice(literals.get(coded, first, first + step)?),
                    }
                    (at, to, length) = (at + step, to + step, length - step);
                    continue;
                }
                // What a sequence copies may overlap with where it goes: then it repeats.
                let end = sequences.get(next).map_or(usize::MAX, |sequence| sequence.start as usize);
                let phase = (at - copied) % offset;
                let step = length.min(end - at).min(offset - phase);
                if step < length {
                    sought.push((at + step, to + step, length - step));
                }
                (at, length) = (copied - offset + phase, step);
            }
        }
        Some(())
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
        return Some((Section::Plain(plain), count, rest));
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

/// Make a table as its mode says and give what follows its description.
fn open_table<'a>(
    table: &mut Table,
    mode: u8,
    bytes: &'a [u8],
    (known, log, most): (&[i16], u32, u32),
    meaning: Meaning,
) -> Option<&'a [u8]> {
    match mode {
        0 => table.build(&Shares::of(known, log), meaning).map(|()| bytes),
        1 => {
            let (&symbol, rest) = bytes.split_first()?;
            table.single(symbol.into(), meaning).map(|()| rest)
        }
        2 => {
            let (shares, rest) = Shares::read(bytes, most)?;
            table.build(&shares, meaning).map(|()| rest)
        }
        _ => None, // that of an earlier block
    }
}

/// The offset that `value`, 1 to 3, stands for among those used last, which it becomes the latest of.
fn repeated(recent: &mut [u32; 3], value: u32, no_literals: bool) -> u32 {
    let [first, second, third] = *recent;
    match value + u32::from(no_literals) {
        1 => {}
        2 => *recent = [second, first, third],
        3 => *recent = [third, first, second],
        _ => *recent = [first.saturating_sub(1), first, second],
    }
    recent[0]
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_distributions_fill_their_tables() {
        for (known, log) in [(&LITERAL_LENGTHS[..], 6), (&MATCH_LENGTHS[..], 6), (&OFFSETS[..], 5)] {
            assert_eq!(known.iter().map(|share| share.unsigned_abs()).sum::<u16>(), 1 << log);
        }
    }

    /// Bytes of many kinds: noise of some bits, noise among repetitions, ramps, runs, text, repetitions of long ago.
    fn sample(kind: u8, length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
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
        let length = encoder.encode(encoder.rungs() - 1, src, &mut coded).unwrap();
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
                        if ranges.read(&coded, length, at, &mut found).is_some() {
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
                let outcome = ranges.read(&coded, src.len(), at, &mut found[..10.min(src.len() - at)]);
                assert_eq!(outcome, Some(()), "kind {kind}, byte {at}");
            }
        }
    }

    #[test]
    fn what_the_library_is_left_with() {
        let mut ranges = Ranges::default();
        let src = sample(5, MOST_BLOCK + 1, 5);
        let mut found = [0; 4];
        assert_eq!(ranges.read(&encoded(&src, 5), src.len(), 7, &mut found), None);
        let src = sample(2, 5000, 5);
        let coded = encoded(&src, 5);
        assert_eq!(ranges.read(&coded, 5000, 4996, &mut found), Some(()));
        assert_eq!(ranges.read(&coded, 5000, 4997, &mut found), None);
        assert_eq!(ranges.read(&coded, 4999, 7, &mut found), None);
        assert_eq!(ranges.read(&[], 5000, 7, &mut found), None);
        for bit in [0, 1, 2, 3, 6] {
            let mut other = coded.clone();
            other[4] ^= 1 << bit;
            assert_eq!(ranges.read(&other, 5000, 7, &mut found), None, "bit {bit} of the descriptor");
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
            if Ranges::default().read(&coded, length, from, &mut found).is_some() {
                prop_assert_eq!(&found[..], &src[from..from + found.len()]);
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
            if Ranges::default().read(&coded, src.len(), from, found).is_some() && fine {
                prop_assert_eq!(&*found, &whole[from..to]);
            }
        }
    }
}
