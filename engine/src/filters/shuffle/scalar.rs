//! The portable version, for every width.

/// Items handled at a time, so that their bytes stay close while the planes take turns.
const BATCH: usize = 64;

/// Shuffle `src`, whole items of `width` bytes.
pub(super) fn shuffle(width: usize, src: &[u8], dst: &mut [u8]) {
    shuffle_from(0, width, src, dst);
}

/// Shuffle the items from number `first` on.
pub(super) fn shuffle_from(first: usize, width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / width;
    for (nbatch, items) in src[first * width..].chunks(BATCH * width).enumerate() {
        for (j, plane) in dst.chunks_exact_mut(nitems).enumerate() {
            let plane = &mut plane[first + nbatch * BATCH..][..items.len() / width];
            for (byte, item) in plane.iter_mut().zip(items.chunks_exact(width)) {
                *byte = item[j];
            }
        }
    }
}

/// Undo [`shuffle`] for planes of the same length.
pub(super) fn unshuffle<'a>(width: usize, planes: &(impl Iterator<Item = &'a [u8]> + Clone), dst: &mut [u8]) {
    for (nbatch, items) in dst.chunks_mut(BATCH * width).enumerate() {
        for (j, plane) in planes.clone().enumerate() {
            let plane = &plane[nbatch * BATCH..][..items.len() / width];
            for (byte, item) in plane.iter().zip(items.chunks_exact_mut(width)) {
                item[j] = *byte;
            }
        }
    }
}
