//! The only version: what the compiler makes of it is bound by memory, but for [`backward`], which only block 0
//! needs and which is written for 8 bytes at a time.

/// XOR `a` and `b`, where `b` may be longer.
pub(super) fn xor(a: &[u8], b: &[u8], dst: &mut [u8]) {
    for ((d, a), b) in dst.iter_mut().zip(a).zip(b) {
        *d = a ^ b;
    }
}

/// XOR every word of `width` bytes with the one before it.
pub(super) fn forward(width: usize, src: &[u8], dst: &mut [u8]) {
    let Some((first, dst)) = dst.split_at_mut_checked(width) else { return };
    first.copy_from_slice(&src[..width]);
    xor(&src[width..], src, dst);
}

/// Undo [`forward`] for words of 1, 2, 4 or 8 bytes.
pub(super) fn backward(width: usize, src: &[u8], dst: &mut [u8]) {
    match width {
        1 => backward_of::<1>(src, dst),
        2 => backward_of::<2>(src, dst),
        4 => backward_of::<4>(src, dst),
        _ => backward_of::<8>(src, dst),
    }
}

fn backward_of<const WIDTH: usize>(src: &[u8], dst: &mut [u8]) {
    let (eights, tail) = src.as_chunks::<8>();
    let (dst, dst_tail) = dst.as_chunks_mut::<8>();
    let mut last = 0;
    for (d, s) in dst.iter_mut().zip(eights) {
        let mut x = u64::from_le_bytes(*s);
        for lag in [1, 2, 4] {
            if lag >= WIDTH {
                x ^= x << (8 * lag);
            }
        }
        *d = (x ^ last).to_le_bytes();
        last ^= repeat_last::<WIDTH>(x);
    }
    let mut last = last.to_le_bytes();
    for (d, s) in dst_tail.chunks_exact_mut(WIDTH).zip(tail.chunks_exact(WIDTH)) {
        for ((d, s), last) in d.iter_mut().zip(s).zip(&mut last) {
            *last ^= s;
            *d = *last;
        }
    }
}

/// The last word of 8 bytes in all places.
fn repeat_last<const WIDTH: usize>(x: u64) -> u64 {
    match WIDTH {
        1 => (x >> 56) * 0x0101_0101_0101_0101,
        2 => (x >> 48) * 0x0001_0001_0001_0001,
        4 => (x >> 32) * 0x0000_0001_0000_0001,
        _ => x,
    }
}
