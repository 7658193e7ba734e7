//! DELTA: XOR with what came before.
//!
//! ```text
//! block 0   out[i] = in[i] ^ in[i - 1]        out[0] = in[0]
//! others    out[i] = in[i] ^ reference[i]     the uncompressed bytes of block 0
//! ```
//!
//! i counts words of [`word_width`] bytes; bytes that do not fill a word are copied. A reader XORs blocks after
//! the first with block 0 *as it decodes it*, so that is what a writer must pass as reference.
//!
//! Source: docs/format/filters.md, section "Delta".

mod scalar;

/// Bytes of a word for a typesize.
pub(super) const fn word_width(typesize: usize) -> usize {
    match typesize {
        1 | 2 | 4 | 8 => typesize,
        _ if typesize.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// Filter `src` into `dst`, of the same length. A reference has at least that length.
pub(super) fn forward(width: usize, src: &[u8], dst: &mut [u8], reference: Option<&[u8]>) {
    let (words, dst) = cut(width, src, dst);
    match reference {
        Some(reference) => scalar::xor(words, reference, dst),
        None => scalar::forward(width, words, dst),
    }
}

/// Undo [`forward`].
pub(super) fn backward(width: usize, src: &[u8], dst: &mut [u8], reference: Option<&[u8]>) {
    let (words, dst) = cut(width, src, dst);
    match reference {
        Some(reference) => scalar::xor(words, reference, dst),
        None => scalar::backward(width, words, dst),
    }
}

/// Undo [`forward`] for whole words with the part of the reference that belongs to them.
pub(super) fn with_reference(src: &[u8], reference: &[u8], dst: &mut [u8]) {
    scalar::xor(src, reference, dst);
}

/// Copy the bytes that do not fill a word; return the whole words of both sides.
fn cut<'a, 'b>(width: usize, src: &'a [u8], dst: &'b mut [u8]) -> (&'a [u8], &'b mut [u8]) {
    let whole = src.len() / width * width;
    let (words, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    (words, dst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::{cases, noise};

    #[test]
    fn words_are_as_wide_as_the_format_says() {
        let widths: Vec<_> = [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 255].map(word_width).into();
        assert_eq!(widths, [1, 2, 1, 4, 1, 1, 8, 1, 8, 8, 1]);
    }

    #[test]
    fn the_first_block_is_xored_with_itself_one_word_on() {
        for width in [1, 2, 4, 8] {
            cases(width, |src, at| {
                let mut expected = src.to_vec();
                for i in width..src.len() / width * width {
                    expected[i] = src[i] ^ src[i - width];
                }
                let mut out = vec![0xA5; at + src.len()];
                forward(width, src, &mut out[at..], None);
                assert_eq!(out[at..], expected, "width {width} length {}", src.len());
                let mut back = vec![0x5A; at + src.len()];
                backward(width, &out[at..], &mut back[at..], None);
                assert_eq!(back[at..], *src, "width {width} length {}", src.len());
            });
        }
    }

    #[test]
    fn other_blocks_are_xored_with_the_reference_and_their_tails_copied() {
        let reference = noise(80_000);
        for width in [1, 2, 4, 8] {
            cases(width, |src, at| {
                let mut expected = src.to_vec();
                for i in 0..src.len() / width * width {
                    expected[i] ^= reference[i];
                }
                let mut out = vec![0xA5; at + src.len()];
                forward(width, src, &mut out[at..], Some(&reference));
                assert_eq!(out[at..], expected, "width {width} length {}", src.len());
                let mut back = vec![0x5A; at + src.len()];
                backward(width, &out[at..], &mut back[at..], Some(&reference));
                assert_eq!(back[at..], *src, "width {width} length {}", src.len());
            });
        }
    }
}
