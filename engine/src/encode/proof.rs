//! A proof that no codec makes anything of a stream, in a fraction of the time of a search.
//!
//! A stream is incompressible if two things hold:
//!
//! * *Its bytes have no shorter code.* In each [`PIECE`] every byte is about as frequent as any other. A sample of lines at
//!   drawn offsets is counted, so no period of the data can hide from the sample.
//! * *Nothing is repeated.* Sequences of three bytes, the shortest that a codec copies, are compared over the whole stream,
//!   at any distance. They are chosen by their content, so both copies of a repetition are chosen.
//!
//! Both tests are against chance: random bytes pass, and whatever saves a hundredth fails. Streams that are too short to
//! tell are not proven. What is not proven is searched.

/// Bytes whose frequencies are taken together. Codecs choose a code for 16 KiB or more.
const PIECE: usize = 16 * 1024;
/// Bytes of a line, and of the cell in which it is drawn.
const LINE: usize = 64;
const CELL: usize = 1024;
/// Fewest bytes of a sample: of so many, a code that saves a hundredth differs from chance.
const MIN_SAMPLE: usize = 1024;
/// Of streams up to this length one sequence of 16 is compared, of longer ones one of 128.
const SHORT: usize = 48 * 1024;
const SHORT_PART: usize = 16;
const LONG_PART: usize = 128;
/// A sequence is compared if its first byte ends in the same bits as this one.
const ANCHOR: u64 = 0x1D;
/// Bytes that are searched for anchors together.
const GROUP: usize = 64;

/// Three bytes of a sequence.
const THREE: u32 = u32::MAX >> 8;

/// The scratch space of one thread.
#[derive(Debug, Default)]
pub(super) struct Prover {
    threes: Seen,
    fours: Seen,
}

impl Prover {
    /// Whether `stream` is proven to be incompressible.
    pub(super) fn is_incompressible(&mut self, stream: &[u8]) -> bool {
        stream.len() >= MIN_SAMPLE && is_flat(stream) && self.is_unrepeated(stream)
    }

    /// Whether sequences are repeated no more often than by chance: those of three bytes, and of long streams those of four,
    /// of which fewer are equal by chance.
    fn is_unrepeated(&mut self, stream: &[u8]) -> bool {
        let Self { threes, fours } = self;
        let is_long = stream.len() > SHORT;
        let part = if is_long { LONG_PART } else { SHORT_PART };
        threes.begin(stream.len() / part);
        fours.begin(if is_long { stream.len() / part } else { 0 });
        for (n, group) in stream.as_chunks::<GROUP>().0.iter().enumerate() {
            let mut chosen = anchors(group, part);
            while chosen != 0 {
                let at = n * GROUP + chosen.trailing_zeros() as usize;
                chosen &= chosen - 1;
                // The last bytes have no sequence of their own.
                let Some(window) = stream[at..].first_chunk() else { break };
                let sequence = u32::from_le_bytes(*window);
                threes.note(sequence & THREE);
                if is_long {
                    fours.note(sequence);
                }
            }
        }
        threes.is_chance(THREE, part) && fours.is_chance(u32::MAX, part)
    }
}

/// Sequences by their hash.
#[derive(Debug, Default)]
struct Seen {
    slots: Vec<u32>,
    /// How many sequences are expected, and how many were there before.
    expected: usize,
    repeated: u32,
    shift: u32,
}

impl Seen {
    fn begin(&mut self, expected: usize) {
        let bits = (4 * expected).next_power_of_two().trailing_zeros().max(8);
        self.slots.clear();
        self.slots.resize(1 << bits, 0);
        (self.expected, self.repeated, self.shift) = (expected, 0, 32 - bits);
    }

    #[inline]
    fn note(&mut self, sequence: u32) {
        // Zero marks a free slot; it counts as repeated once.
        let slot = &mut self.slots[(sequence.wrapping_mul(0x9E37_79B1) >> self.shift) as usize];
        self.repeated += u32::from(*slot == sequence);
        *slot = sequence;
    }

    /// Whether no more of them are repeated than by chance; they are one of `part` of the numbers up to `most`.
    fn is_chance(&self, most: u32, part: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (expected, kinds) = (self.expected as f64, f64::from(most) / part as f64);
        let chance = expected * expected / 2.0 / kinds;
        f64::from(self.repeated) <= 1.0 + chance + 3.0 * chance.sqrt()
    }
}

/// The bytes of a group at which sequences are compared, as bits: one of `part` bytes, by its value.
fn anchors(group: &[u8; GROUP], part: usize) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mask = ONES * (part as u64 - 1);
    let mut chosen = 0;
    for (n, word) in group.as_chunks::<8>().0.iter().enumerate() {
        let other = (u64::from_le_bytes(*word) ^ (ONES * ANCHOR)) & mask;
        // The upper bit of a byte is set where the byte is no anchor; the sum stays within the byte.
        let found = !(other + 0x7F * ONES) & (0x80 * ONES);
        // The eight bits, side by side.
        chosen |= ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * n);
    }
    chosen
}

/// Whether every byte is about as frequent as any other in each piece.
///
/// Of `n` random bytes the squares of the frequencies add up to `n + n * n / 256`, give or take an eleventh of `n`. With a
/// third of `n` more, 1024 bytes have a code that saves 0.75 %.
fn is_flat(stream: &[u8]) -> bool {
    let mut drawn = 0x2545_F491_u32;
    let npieces = (stream.len() / PIECE).max(1);
    let piece = stream.len() / npieces;
    // A short piece is counted whole.
    let cell = CELL.min(piece / (MIN_SAMPLE / LINE)).max(LINE);
    stream.chunks(piece).filter(|bytes| bytes.len() >= MIN_SAMPLE).all(|bytes| {
        // Four tables, because the same byte is often met twice in a row.
        let mut tables = [[0_u16; 256]; 4];
        let mut count = 0_usize;
        for cell in bytes.chunks_exact(cell) {
            drawn ^= drawn << 13;
            drawn ^= drawn >> 17;
            drawn ^= drawn << 5;
            let at = drawn as usize % (cell.len() - LINE + 1);
            count += LINE;
            for group in cell[at..at + LINE].as_chunks::<4>().0 {
                for (table, &byte) in tables.iter_mut().zip(group) {
                    table[usize::from(byte)] += 1;
                }
            }
        }
        let squares: u32 =
            (0..256).map(|byte| tables.iter().map(|table| u32::from(table[byte])).sum::<u32>().pow(2)).sum();
        squares as usize <= count + count * count / 256 + count / 3
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    fn proven(stream: &[u8]) -> bool {
        Prover::default().is_incompressible(stream)
    }

    #[test]
    fn random_bytes_are_proven_at_most_lengths() {
        for length in [1024, 5000, 20_000, 65_536, 300_000, 1 << 20, 4 << 20] {
            let count = (0..20).filter(|&seed| proven(&noise(length, seed))).count();
            assert!(count >= 16, "{count} of 20 at {length}");
        }
        assert!(!proven(&noise(1000, 1)));
    }

    #[test]
    fn a_repetition_at_any_distance_is_no_noise() {
        for (length, distance) in [(1 << 18, 100 * 1024), (1 << 20, 700_000), (60_000, 5_000), (20_000, 9_000)] {
            let mut stream = noise(length, 3);
            let count = (length - distance).min(2 * length / 50);
            stream.copy_within(..count, distance);
            assert!(!proven(&stream), "{count} bytes of {length} at {distance}");
        }
    }

    #[test]
    fn one_piece_with_a_shorter_code_is_enough() {
        let mut stream = noise(1 << 18, 4);
        for byte in &mut stream[100_000..140_000] {
            *byte &= 0x3F;
        }
        assert!(!proven(&stream));
    }

    #[test]
    fn three_bytes_of_each_four_repeated_are_found() {
        // Bytes of item `n` are those of items `n`, `n - 24`, `n - 48` and `n - 72` of a plane of noise.
        let plane = noise(1 << 16, 7);
        for length in [4096, 19_776, 1 << 17] {
            let items = (72..72 + length / 4).flat_map(|n| [plane[n], plane[n - 24], plane[n - 48], plane[n - 72]]);
            assert!(!proven(&items.collect::<Vec<u8>>()), "{length}");
        }
    }

    #[test]
    fn records_that_the_sample_might_miss_are_found() {
        // 64 random bytes of each 512, and 448 of a few values.
        let mut stream = noise(1 << 18, 5);
        for record in stream.chunks_mut(512) {
            record[64..].iter_mut().for_each(|byte| *byte &= 0x0F);
        }
        assert!(!proven(&stream));
    }
}
