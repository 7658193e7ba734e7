//! Delta: each word XOR the one before it, or the one at the same place in block 0.
//!
//! ```text
//! block 0     out[0] = in[0], out[i] = in[i] ^ in[i - 1]
//! others      out[i] = in[i] ^ block0[i]
//! ```
//!
//! Bytes that do not fill a word are copied.
//!
//! Source: docs/format/filters.md, section "Delta".

/// Bytes of a word for items of `typesize` bytes.
pub(super) fn word_of(typesize: usize) -> usize {
    match typesize {
        1 | 2 | 4 | 8 => typesize,
        _ if typesize.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// Encode block 0.
pub(super) fn encode_first(word: usize, src: &[u8], dst: &mut [u8]) {
    let extent = src.len() - src.len() % word;
    let start = word.min(extent);
    dst[..start].copy_from_slice(&src[..start]);
    dst[extent..].copy_from_slice(&src[extent..]);
    for (out, (this, before)) in dst[start..extent].iter_mut().zip(src[start..extent].iter().zip(src)) {
        *out = this ^ before;
    }
}

/// Decode block 0: every word is the XOR of all encoded words up to it.
pub(super) fn decode_first(word: usize, src: &[u8], dst: &mut [u8]) {
    let extent = src.len() - src.len() % word;
    dst[extent..].copy_from_slice(&src[extent..]);
    let mut carry = 0u64;
    let (eights, rest) = src[..extent].as_chunks::<8>();
    let (out, out_rest) = dst[..extent].as_chunks_mut::<8>();
    for (bytes, out) in eights.iter().zip(out) {
        let mut x = u64::from_le_bytes(*bytes);
        if word <= 1 {
            x ^= x << 8;
        }
        if word <= 2 {
            x ^= x << 16;
        }
        if word <= 4 {
            x ^= x << 32;
        }
        x ^= carry;
        *out = x.to_le_bytes();
        carry = match word {
            1 => (x >> 56) * 0x0101_0101_0101_0101,
            2 => (x >> 48) * 0x0001_0001_0001_0001,
            4 => (x >> 32) * 0x0000_0001_0000_0001,
            _ => x,
        };
    }
    let mut last = carry.to_le_bytes();
    for (out, bytes) in out_rest.chunks_exact_mut(word).zip(rest.chunks_exact(word)) {
        for ((out, byte), last) in out.iter_mut().zip(bytes).zip(&mut last) {
            *last ^= byte;
            *out = *last;
        }
    }
}

/// Encode or decode another block.
pub(super) fn against(word: usize, src: &[u8], block0: &[u8], dst: &mut [u8]) {
    let extent = (src.len() - src.len() % word).min(block0.len());
    for (out, (byte, reference)) in dst[..extent].iter_mut().zip(src[..extent].iter().zip(block0)) {
        *out = byte ^ reference;
    }
    dst[extent..].copy_from_slice(&src[extent..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sample;

    #[test]
    fn block_0_follows_the_recurrence_and_comes_back() {
        for typesize in [1, 2, 3, 4, 6, 8, 16, 24, 255] {
            let word = word_of(typesize);
            for len in 0..120 {
                let src = sample(len);
                let mut coded = vec![0xAA; len];
                encode_first(word, &src, &mut coded);
                for at in 0..len {
                    let whole = at < len - len % word && at >= word;
                    assert_eq!(coded[at], if whole { src[at] ^ src[at - word] } else { src[at] });
                }
                let mut back = vec![0xAA; len];
                decode_first(word, &coded, &mut back);
                assert_eq!(back, src, "typesize {typesize} len {len}");
            }
        }
    }

    #[test]
    fn other_blocks_are_taken_against_block_0() {
        let (block0, src) = (sample(64), sample(61));
        let (mut coded, mut back) = (vec![0; 61], vec![0; 61]);
        against(4, &src, &block0, &mut coded);
        assert_eq!(coded[..60], vec![0; 60]);
        assert_eq!(coded[60], src[60]);
        against(4, &coded, &block0, &mut back);
        assert_eq!(back, src);
    }
}
