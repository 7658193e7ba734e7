//! A few bytes out of the middle of a stream, without its output.
//!
//! A stream is a list of sequences: so many literals, then so many bytes from so far back. Read up to the bytes wanted,
//! they say where each byte comes from. A byte that was copied is looked up where it was copied from, and so on back to a
//! literal.
//!
//! Here are the looking up, and the sequences of LZ4 and BloscLZ, which are whole bytes. Those of Zstandard are in
//! `zstd/range.rs`.
//!
//! Source: docs/format/codecs.md, sections "BloscLZ" and "LZ4".

#![expect(clippy::inline_always, reason = "what a reader calls is compiled for the same instructions as it")]

use super::blosclz::FAR_BASE;

/// One step from a byte to where it was copied from takes about as long as reading so many sequences.
const SEQUENCES_PER_STEP: usize = 2;
const LEAST_STEPS: usize = 64;
/// Longest stream whose sequences are kept, in bytes.
const MOST: usize = 512 * 1024;
/// Fewest bytes that a sequence of LZ4 copies.
const LZ4_COPIED: usize = 4;

/// Where the bytes of the stream from `start` on come from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    /// First byte, a literal if there are any.
    pub(super) start: u32,
    /// First byte that is copied.
    pub(super) copied: u32,
    /// From how far back, in bytes; the codec may mean something else.
    pub(super) offset: u32,
    /// Where its first literal is among the literals.
    pub(super) literals: u32,
}

/// Steps that looking up may take before decoding all is quicker.
#[inline(always)]
pub(super) fn steps_for(sequences: usize) -> usize {
    LEAST_STEPS + sequences / SEQUENCES_PER_STEP
}

/// Find the bytes from `from` on where they come from; None after too many steps.
///
/// `sought` is scratch space. `offset_of` returns how far back the last of some sequences copies from, and `literals`
/// writes literals from a position on.
#[inline(always)]
pub(super) fn look_up(
    sequences: &[Sequence],
    from: usize,
    dst: &mut [u8],
    sought: &mut Vec<(usize, usize, usize)>,
    mut offset_of: impl FnMut(&[Sequence]) -> Option<usize>,
    mut literals: impl FnMut(usize, &mut [u8]) -> Option<()>,
) -> Option<()> {
    let mut steps = steps_for(sequences.len());
    sought.clear();
    sought.push((from, 0, dst.len()));
    while let Some((mut at, mut to, mut length)) = sought.pop() {
        while length > 0 {
            steps = steps.checked_sub(1)?;
            let next = sequences.partition_point(|sequence| sequence.start as usize <= at);
            let Sequence { start, copied, literals: before, .. } = *sequences.get(next.checked_sub(1)?)?;
            let (start, copied) = (start as usize, copied as usize);
            if at < copied {
                let step = length.min(copied - at);
                literals(before as usize + at - start, dst.get_mut(to..to + step)?)?;
                (at, to, length) = (at + step, to + step, length - step);
                continue;
            }
            let offset = offset_of(&sequences[..next])?;
            if offset == 0 || offset > copied {
                return None;
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

/// Scratch space for reading ranges of LZ4 and BloscLZ streams.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    found: Vec<Sequence>,
    sought: Vec<(usize, usize, usize)>,
}

impl Sequences {
    /// Fill `dst` with the bytes from `from` on of an LZ4 stream of `full` bytes; None if that has to be left to the
    /// library. Damage elsewhere in the stream may go unnoticed.
    pub(super) fn read_lz4(&mut self, src: &[u8], full: usize, from: usize, dst: &mut [u8]) -> Option<()> {
        let to = from.checked_add(dst.len()).filter(|&to| to <= full && full <= MOST)?;
        self.found.clear();
        let (mut i, mut o) = (0, 0);
        while o < to {
            let token = *src.get(i)?;
            i += 1;
            let count = lz4_length(src, &mut i, token >> 4)?;
            let sequence = Sequence { start: half(o), copied: half(o + count), offset: 0, literals: half(i) };
            (i, o) = (i + count, o + count);
            if o >= to {
                self.found.push(sequence);
                break;
            }
            let offset = u16::from_le_bytes(*src.get(i..)?.first_chunk()?);
            i += 2;
            self.found.push(Sequence { offset: offset.into(), ..sequence });
            o += lz4_length(src, &mut i, token & 15)? + LZ4_COPIED;
        }
        self.look_up(src, full, (i, o), from, dst)
    }

    /// The same of a BloscLZ stream.
    pub(super) fn read_blosclz(&mut self, src: &[u8], full: usize, from: usize, dst: &mut [u8]) -> Option<()> {
        let to = from.checked_add(dst.len()).filter(|&to| to <= full && full <= MOST)?;
        self.found.clear();
        let (mut i, mut o) = (0, 0);
        // The upper bits of the first byte mean nothing.
        let mut mask = 31;
        while o < to {
            let control = usize::from(*src.get(i)? & mask);
            (i, mask) = (i + 1, u8::MAX);
            if control < 32 {
                let count = control + 1;
                self.found.push(Sequence { start: half(o), copied: half(o + count), offset: 0, literals: half(i) });
                (i, o) = (i + count, o + count);
                continue;
            }
            let mut count = (control >> 5) + 2;
            if count == 9 {
                loop {
                    let more = *src.get(i)?;
                    i += 1;
                    count += usize::from(more);
                    if more != u8::MAX {
                        break;
                    }
                }
            }
            let mut offset = ((control & 31) << 8) + usize::from(*src.get(i)?) + 1;
            i += 1;
            if offset == FAR_BASE {
                let far = u16::from_be_bytes(*src.get(i..)?.first_chunk()?);
                (i, offset) = (i + 2, offset + usize::from(far));
            }
            self.found.push(Sequence { start: half(o), copied: half(o), offset: half(offset), literals: 0 });
            o += count;
            // A match is never the last operation.
            if i >= src.len() {
                return None;
            }
        }
        self.look_up(src, full, (i, o), from, dst)
    }

    /// Look up what was read as far as byte `i` of `src`, which is as far as byte `o` of the content.
    fn look_up(&mut self, src: &[u8], full: usize, (i, o): (usize, usize), from: usize, dst: &mut [u8]) -> Option<()> {
        if i > src.len() || o > full {
            return None;
        }
        let offset_of = |sequences: &[Sequence]| Some(sequences.last()?.offset as usize);
        let literals = |first: usize, found: &mut [u8]| {
            found.copy_from_slice(src.get(first..first + found.len())?);
            Some(())
        };
        look_up(&self.found, from, dst, &mut self.sought, offset_of, literals)
    }
}

/// A length of which four bits are in a token, and what is more in bytes behind it.
#[inline(always)]
fn lz4_length(src: &[u8], i: &mut usize, nibble: u8) -> Option<usize> {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            let more = *src.get(*i)?;
            *i += 1;
            length += usize::from(more);
            if more < u8::MAX {
                break;
            }
        }
    }
    Some(length)
}

/// Positions of streams up to [`MOST`] fit; what a damaged stream claims beyond is refused later.
#[inline(always)]
fn half(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Codec, Decoder, Encoder};
    use super::*;
    use crate::testing::{Random, noise};
    use proptest::prelude::*;

    /// Words, noise, runs and repetitions of long ago.
    fn sample(length: usize, seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed | 1);
        let mut number = move || (random.number() >> 33) as usize;
        let mut out: Vec<u8> = Vec::with_capacity(length + 300);
        while out.len() < length {
            match number() % 4 {
                0 => out.extend(noise(number() % 40 + 1, number() as u64 | 1)),
                1 => out.extend(std::iter::repeat_n(number().to_le_bytes()[0], number() % 300)),
                _ if out.len() > 8 => {
                    let from = number() % out.len();
                    let count = (number() % 60 + 4).min(out.len() - from);
                    out.extend_from_within(from..from + count);
                }
                _ => out.extend(b"some words "),
            }
        }
        out.truncate(length);
        out
    }

    fn encoded(codec: Codec, src: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; src.len()];
        let length = Encoder::new(codec, 9, None).unwrap().encode(src, &mut out)?;
        out.truncate(length);
        Some(out)
    }

    fn read(codec: Codec, src: &[u8], full: usize, from: usize, dst: &mut [u8]) -> Option<()> {
        let mut sequences = Sequences::default();
        match codec {
            Codec::BloscLz => sequences.read_blosclz(src, full, from, dst),
            _ => sequences.read_lz4(src, full, from, dst),
        }
    }

    #[test]
    fn bytes_of_a_stream_are_read_alone() {
        for codec in [Codec::Lz4, Codec::Lz4Hc, Codec::BloscLz] {
            let (mut all, mut done) = (0, 0);
            for length in [100, 5000, 65_536, MOST] {
                let src = sample(length, 3);
                let coded = encoded(codec, &src).unwrap();
                for at in (0..length - 10).step_by(length / 50) {
                    let mut found = [0; 10];
                    all += 1;
                    if read(codec, &coded, length, at, &mut found).is_some() {
                        assert_eq!(found, src[at..at + 10], "{codec:?}, byte {at} of {length}");
                        done += 1;
                    }
                }
            }
            assert!(done > all * 3 / 4, "{codec:?}: {done} of {all}");
        }
        let src = sample(MOST + 1, 3);
        assert_eq!(read(Codec::Lz4, &encoded(Codec::Lz4, &src).unwrap(), src.len(), 5, &mut [0; 4]), None);
    }

    proptest! {
        #[test]
        fn a_range_is_a_part_of_the_whole(
            length in 1_usize..70_000,
            seed in any::<u64>(),
            from in any::<prop::sample::Index>(),
            count in any::<prop::sample::Index>(),
        ) {
            let src = sample(length, seed);
            let from = from.index(length);
            let mut found = vec![0; count.index(length - from) + 1];
            for codec in [Codec::Lz4, Codec::BloscLz] {
                if let Some(coded) = encoded(codec, &src)
                    && read(codec, &coded, length, from, &mut found).is_some()
                {
                    prop_assert_eq!(&found[..], &src[from..from + found.len()]);
                }
            }
        }

        #[test]
        fn damage_is_noticed_or_does_not_matter(
            seed in any::<u64>(),
            from in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            bit in 0_u32..8,
            cut in any::<bool>(),
        ) {
            let src = sample(9000, seed);
            for codec in [Codec::Lz4, Codec::BloscLz] {
                let Some(mut coded) = encoded(codec, &src) else { continue };
                let at = at.index(coded.len());
                if cut {
                    coded.truncate(at);
                } else {
                    coded[at] ^= 1 << bit;
                }
                let mut whole = vec![0; src.len()];
                let verdict = Decoder::new().decode(codec.format(), &coded, &mut whole, None);
                let mut found = [0; 20];
                let from = from.index(src.len() - found.len());
                let outcome = read(codec, &coded, src.len(), from, &mut found);
                if verdict.is_ok() && outcome.is_some() {
                    prop_assert_eq!(&found[..], &whole[from..from + found.len()]);
                }
            }
        }
    }
}
