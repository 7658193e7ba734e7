//! The plain version: 8 bytes at a time as one number of 8 x 8 bits.

/// Split a byte plane into 8 bit planes.
pub(super) fn split(src: &[u8], dst: &mut [u8], stride: usize, at: usize) {
    for (m, bytes) in src.as_chunks::<8>().0.iter().enumerate() {
        for (b, bits) in transpose(u64::from_le_bytes(*bytes)).to_le_bytes().into_iter().enumerate() {
            dst[b * stride + at + m] = bits;
        }
    }
}

/// Join 8 bit planes to a byte plane.
pub(super) fn join(src: &[u8], stride: usize, at: usize, dst: &mut [u8]) {
    for (m, bytes) in dst.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        for (b, byte) in bytes.iter_mut().enumerate() {
            *byte = src[b * stride + at + m];
        }
        *bytes = transpose(u64::from_le_bytes(*bytes)).to_le_bytes();
    }
}

/// Exchange bit b of byte k with bit k of byte b: places of 1, then of 2, then of 4 bits and bytes.
fn transpose(x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00AA_00AA_00AA_00AA;
    let x = x ^ t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_CCCC_0000_CCCC;
    let x = x ^ t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_F0F0_F0F0;
    x ^ t ^ (t << 28)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_moves_every_bit_to_its_mirror() {
        for k in 0..8 {
            for b in 0..8 {
                assert_eq!(transpose(1 << (8 * k + b)), 1 << (8 * b + k));
            }
        }
    }
}
