//! The portable version, written so that the compiler can do many bytes at a time.

/// Bytes of a bit plane handled at a time.
const BATCH: usize = 64;

/// Split a byte plane into 8 bit planes.
pub(super) fn split(src: &[u8], dst: &mut [u8], stride: usize, at: usize) {
    for (nbatch, batch) in src.as_chunks::<8>().0.chunks(BATCH).enumerate() {
        let mut rows = [[0; BATCH]; 8];
        for (m, eight) in batch.iter().enumerate() {
            for (row, byte) in rows.iter_mut().zip(eight) {
                row[m] = *byte;
            }
        }
        transpose(&mut rows);
        for (b, row) in rows.iter().enumerate() {
            dst[b * stride + at + nbatch * BATCH..][..batch.len()].copy_from_slice(&row[..batch.len()]);
        }
    }
}

/// Join 8 bit planes to a byte plane.
pub(super) fn join(src: &[u8], stride: usize, at: usize, dst: &mut [u8]) {
    for (nbatch, batch) in dst.as_chunks_mut::<8>().0.chunks_mut(BATCH).enumerate() {
        let mut rows = [[0; BATCH]; 8];
        for (b, row) in rows.iter_mut().enumerate() {
            row[..batch.len()].copy_from_slice(&src[b * stride + at + nbatch * BATCH..][..batch.len()]);
        }
        transpose(&mut rows);
        for (m, eight) in batch.iter_mut().enumerate() {
            for (row, byte) in rows.iter().zip(eight) {
                *byte = row[m];
            }
        }
    }
}

/// In every column, exchange bit b of row k with bit k of row b.
fn transpose(rows: &mut [[u8; BATCH]; 8]) {
    exchange::<4>(rows, 0x0F);
    exchange::<2>(rows, 0x33);
    exchange::<1>(rows, 0x55);
}

/// Exchange the upper bits of every row whose number lacks `STEP` with the lower bits of the row `STEP` on.
fn exchange<const STEP: usize>(rows: &mut [[u8; BATCH]; 8], lower: u8) {
    for group in rows.chunks_exact_mut(2 * STEP) {
        let (upper, rest) = group.split_at_mut(STEP);
        for (a, b) in upper.iter_mut().zip(rest) {
            for (a, b) in a.iter_mut().zip(b) {
                let differing = ((*a >> STEP) ^ *b) & lower;
                *b ^= differing;
                *a ^= differing << STEP;
            }
        }
    }
}
