//! A proof that no codec makes anything of a stream, in a fraction of the time of a search.
//!
//! A stream is incompressible if two things hold:
//!
//! * *Its bytes have no shorter code.* In each [`PIECE`] every byte is about as frequent as any other. A sample of lines at
//!   drawn offsets is counted, so no period of the data can hide from the sample.
//! * *Nothing is repeated.* Sequences of four bytes are compared over the whole stream, at any distance. They are chosen by
//!   their content, so both copies of a repetition are chosen.
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
/// Of streams up to this length every sixteenth sequence is compared; of longer ones one of 128.
const SHORT: usize = 48 * 1024;
/// Sequences that begin with these bytes are compared.
const ANCHORS: [u8; 2] = [0x1D, 0xC3];

/// The scratch space of one thread.
#[derive(Debug, Default)]
pub(super) struct Prover {
    /// Sequences by their hash.
    seen: Vec<u32>,
}

impl Prover {
    /// Whether `stream` is proven to be incompressible.
    pub(super) fn is_incompressible(&mut self, stream: &[u8]) -> bool {
        stream.len() >= MIN_SAMPLE && is_flat(stream) && self.is_unrepeated(stream)
    }

    /// Whether sequences of four bytes are repeated no more often than by chance.
    fn is_unrepeated(&mut self, stream: &[u8]) -> bool {
        let expected = if stream.len() <= SHORT { stream.len() / 16 } else { stream.len() / 128 };
        let bits = (4 * expected).next_power_of_two().trailing_zeros().max(8);
        self.seen.clear();
        self.seen.resize(1 << bits, 0);
        let (seen, mut repeated) = (&mut self.seen, 0_u32);
        let mut note = |sequence: u32| {
            // Zero marks a free slot; it counts as repeated once.
            let slot = &mut seen[(sequence.wrapping_mul(0x9E37_79B1) >> (32 - bits)) as usize];
            repeated += u32::from(*slot == sequence);
            *slot = sequence;
        };
        if stream.len() <= SHORT {
            for window in stream.windows(4).filter_map(|window| window.first_chunk::<4>()) {
                if window[0] & 15 == ANCHORS[0] & 15 {
                    note(u32::from_le_bytes(*window));
                }
            }
        } else {
            let [a, b] = ANCHORS;
            for at in memchr::memchr2_iter(a, b, stream) {
                if let Some(window) = stream[at..].first_chunk() {
                    note(u32::from_le_bytes(*window));
                }
            }
        }
        // Pairs of `expected` sequences out of 2^28, or of 2^25, that are equal by chance, and thrice their deviation.
        let kinds: f64 = if stream.len() <= SHORT { 268_435_456.0 } else { 33_554_432.0 };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let chance = expected as f64 * expected as f64 / 2.0 / kinds;
        f64::from(repeated) <= 1.0 + chance + 3.0 * chance.sqrt()
    }
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
    fn records_that_the_sample_might_miss_are_found() {
        // 64 random bytes of each 512, and 448 of a few values.
        let mut stream = noise(1 << 18, 5);
        for record in stream.chunks_mut(512) {
            record[64..].iter_mut().for_each(|byte| *byte &= 0x0F);
        }
        assert!(!proven(&stream));
    }
}
