//! Where a stream is noise: parts in which no codec finds anything.
//!
//! Streams that are not split, as those of bitshuffled blocks, often have parts of noise between others. Searching them
//! takes most of the time, and coded they are read at a tenth of the speed of a copy.
//!
//! A piece is noise if every byte is about as frequent in it as any other, so that no shorter code for bytes is to be
//! had, and if LZ4 finds nothing in it that is repeated, neither from itself nor from the 64 KiB before it.

use std::ops::Range;

use super::lz4;
use crate::Result;

/// Length of a piece, in bytes. Each part that is coded costs some tens of bytes, and bit planes are of such lengths.
const PIECE: usize = 1024;

/// What finds it, with its scratch space.
#[derive(Debug)]
pub struct IncompressibleFinder(lz4::PieceEncoder<PIECE>);

impl IncompressibleFinder {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// [`crate::Error::OutOfMemory`].
    pub fn new() -> Result<Self> {
        Ok(Self(lz4::PieceEncoder::new()?))
    }

    /// The parts of `src` that are noise, in order and apart from each other.
    pub fn find(&mut self, src: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        self.0.encode(src, |piece, shrinks| {
            if !shrinks && is_flat(piece) {
                match found.last_mut().filter(|last| last.end == at) {
                    Some(last) => last.end += PIECE,
                    None => found.push(at..at + PIECE),
                }
            }
            at += PIECE;
        });
        found
    }
}

/// Whether every byte is about as frequent as any other.
///
/// Of `n` bytes of noise the squares of the frequencies add up to `n + n * n / 256`, give or take an eleventh of `n`. A
/// third of `n` more, and a code for the bytes would save less than a hundredth, before it is written down.
fn is_flat(piece: &[u8; PIECE]) -> bool {
    // Four tables, because the same byte is often met twice in a row.
    let mut tables = [[0_u16; 256]; 4];
    for bytes in piece.as_chunks::<4>().0 {
        for (table, &byte) in tables.iter_mut().zip(bytes) {
            table[usize::from(byte)] += 1;
        }
    }
    let [a, b, c, d] = &tables;
    let squares = (0..256).map(|n| u32::from(a[n] + b[n] + c[n] + d[n]).pow(2));
    squares.sum::<u32>() as usize <= PIECE + PIECE * PIECE / 256 + PIECE / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    fn found(src: &[u8]) -> Vec<Range<usize>> {
        IncompressibleFinder::new().unwrap().find(src)
    }

    #[test]
    fn noise_is_found_between_other_bytes_in_whole_pieces() {
        let ramp: Vec<u8> = (0..=255).cycle().take(3 * PIECE).collect();
        let src = [noise(4 * PIECE, 1), ramp.clone(), noise(2 * PIECE + 100, 2), ramp].concat();
        assert_eq!(found(&src), [0..4 * PIECE, 7 * PIECE..9 * PIECE]);
        assert_eq!(found(&noise(PIECE - 1, 3)), []);
        assert_eq!(found(&[]), []);
    }

    #[test]
    fn what_is_repeated_is_no_noise_however_it_looks() {
        let once = noise(8 * PIECE, 4);
        assert_eq!(found(&[once.clone(), once].concat()), std::slice::from_ref(&(0..8 * PIECE)));
    }

    #[test]
    fn what_has_a_shorter_code_is_no_noise() {
        let biased: Vec<u8> =
            noise(8 * PIECE, 5).iter().zip(noise(8 * PIECE, 6)).map(|(a, b)| a & (b | 0x7F)).collect();
        assert_eq!(found(&biased), []);
    }

    #[test]
    fn earlier_streams_change_nothing() {
        let mut finder = IncompressibleFinder::new().unwrap();
        let src = noise(8 * PIECE, 7);
        assert_eq!(finder.find(&src), std::slice::from_ref(&(0..8 * PIECE)));
        assert_eq!(finder.find(&src), std::slice::from_ref(&(0..8 * PIECE)));
    }
}
