//! The plain version, for all widths, and for what is left over by the fast ones.

/// Items handled at a time, so that their bytes stay in the first-level cache for all planes.
const BATCH: usize = 256;

/// Shuffle the items from number `from` on.
pub(super) fn shuffle(width: usize, src: &[u8], dst: &mut [u8], from: usize) {
    let nitems = src.len() / width;
    let mut start = from;
    while start < nitems {
        let count = BATCH.min(nitems - start);
        let items = &src[start * width..(start + count) * width];
        for plane in 0..width {
            let out = &mut dst[plane * nitems + start..][..count];
            for (byte, item) in out.iter_mut().zip(items.chunks_exact(width)) {
                *byte = item[plane];
            }
        }
        start += count;
    }
}

/// Unshuffle the items from number `from` on.
pub(super) fn unshuffle(width: usize, src: &[u8], dst: &mut [u8], from: usize) {
    let nitems = src.len() / width;
    let mut start = from;
    while start < nitems {
        let count = BATCH.min(nitems - start);
        let items = &mut dst[start * width..(start + count) * width];
        for plane in 0..width {
            let bytes = &src[plane * nitems + start..][..count];
            for (byte, item) in bytes.iter().zip(items.chunks_exact_mut(width)) {
                item[plane] = *byte;
            }
        }
        start += count;
    }
}
