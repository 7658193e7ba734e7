//! The portable version. Differences need no other: the compiler does many at a time.

/// The difference of every byte and the one before it.
pub(super) fn differences(src: &[u8], dst: &mut [u8]) {
    let Some((first, rest)) = src.split_first() else { return };
    dst[0] = *first;
    for ((d, byte), before) in dst[1..].iter_mut().zip(rest).zip(src) {
        *d = byte.wrapping_sub(*before);
    }
}

/// The sum of every byte and those before it, beginning with `sum`.
pub(super) fn sums(mut sum: u8, src: &[u8], dst: &mut [u8]) {
    for (d, byte) in dst.iter_mut().zip(src) {
        sum = sum.wrapping_add(*byte);
        *d = sum;
    }
}
