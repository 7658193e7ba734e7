//! Copying many bytes between buffers that are in no cache.
//!
//! A processor foresees which bytes come next, but not beyond a page and not far; asking for those of both sides
//! some lines ahead keeps more of them on their way at a time.

/// How far ahead of a copy its source is asked for, and its destination, in bytes.
const SOURCE_AHEAD: usize = 2048;
const DESTINATION_AHEAD: usize = 512;

/// Shorter copies are left to the system: nothing could be asked for in time.
const LONG: usize = 4096;

/// Copy `src` to `dst`, of the same length.
pub(crate) fn copy(src: &[u8], dst: &mut [u8]) {
    if !cfg!(target_arch = "x86_64") || src.len() < LONG || src.len() != dst.len() {
        return dst.copy_from_slice(src);
    }
    let (lines, tail) = src.as_chunks::<64>();
    let (dst, dst_tail) = dst.as_chunks_mut::<64>();
    for (d, s) in dst.iter_mut().zip(lines) {
        prefetch(s, SOURCE_AHEAD);
        prefetch(d, DESTINATION_AHEAD);
        *d = *s;
    }
    dst_tail.copy_from_slice(tail);
}

/// Ask for the line of the byte that is `ahead` of the first one, wherever that is: it is a hint.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = bytes.as_ptr().wrapping_add(ahead);
        #[expect(unsafe_code, reason = "a hint takes a pointer")]
        // SAFETY: a prefetch reads nothing that the program could see, and any address may be given to it.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    let _ = (bytes, ahead);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_every_length_and_place_are_whole() {
        let src: Vec<u8> = (0..70_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        for length in (0..200).chain(LONG - 1..LONG + 130).chain([65_536, 69_990]) {
            for at in [0, 1, 9] {
                let mut dst = vec![0; length];
                copy(&src[at..at + length], &mut dst);
                assert_eq!(dst, src[at..at + length], "length {length} from {at}");
            }
        }
    }
}
