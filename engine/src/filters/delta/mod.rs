//! DELTA: XOR with what came before.
//!
//! ```text
//! block 0   out[i] = in[i] ^ in[i - 1]        out[0] = in[0]
//! others    out[i] = in[i] ^ reference[i]     the plain bytes of block 0
//! ```
//!
//! i counts words of [`word_width`] bytes; bytes that do not fill a word are copied. A reader XORs blocks after
//! the first with block 0 *as it decodes it*, so that is what a writer must pass as reference.
//!
//! Source: `docs/format/chunk.md`, section 8.4.

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

/// Copy the bytes that do not fill a word; return the whole words of both sides.
fn cut<'a, 'b>(width: usize, src: &'a [u8], dst: &'b mut [u8]) -> (&'a [u8], &'b mut [u8]) {
    let whole = src.len() / width * width;
    let (words, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    (words, dst)
}
