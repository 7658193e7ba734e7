//! What the fuzz targets promise of codecs and headers, as functions that the unit tests below call as well.
//!
//! Each function takes any bytes whatever and panics if a promise is broken. The crate in `fuzz/` hands the fuzzer's
//! bytes to them. What is promised of whole chunks is in `superchunk_io::fuzzing`.

use crate::codecs::{Codec, CodecFormat, Decoder, Encoder, ndlz as nd};
use crate::header::Header;
use crate::limits::EXTENDED_HEADER_LENGTH;
use crate::shape::BlockShape;

/// Two fillings of a destination: a byte that comes out as both of them was never written.
const FILLINGS: [u8; 2] = [0xA5, 0x5A];

/// Any bytes decode as `BloscLZ` or give an error; any content comes back from its encoder.
///
/// The first two bytes of `data` are the length that a stream must have.
pub fn blosclz(data: &[u8]) {
    let Some((length, stream)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length));
    let [one, other] = FILLINGS.map(|filling| {
        let mut dst = vec![filling; length];
        let verdict = Decoder::new().decode(CodecFormat::BloscLz, stream, &mut dst, None);
        verdict.map(|()| dst)
    });
    assert_eq!(one, other, "a byte of the destination was not written");
    for clevel in [1, 5, 9] {
        let Ok(mut encoder) = Encoder::new(Codec::BloscLz, clevel, None) else { panic!("no BloscLZ") };
        let mut coded = vec![0; stream.len()];
        if let Some(length) = encoder.encode(stream, &mut coded) {
            let mut decoded = vec![FILLINGS[0]; stream.len()];
            let verdict = Decoder::new().decode(CodecFormat::BloscLz, &coded[..length], &mut decoded, None);
            assert_eq!(verdict, Ok(()));
            assert!(decoded == stream, "other bytes came back");
        }
    }
}

/// Any bytes decode as NDLZ or give an error; any content comes back from its encoder.
///
/// The first three bytes of `data` are the array's rows and columns, and the side of its cells.
pub fn ndlz(data: &[u8]) {
    let Some((&[rows, cols, side], stream)) = data.split_first_chunk::<3>() else { return };
    let (rows, cols) = (usize::from(rows % 64) + 1, usize::from(cols % 64) + 1);
    let side = if side & 0xF0 == 0xF0 { side } else { 4 + side % 2 * 4 };
    let [one, other] = FILLINGS.map(|filling| {
        let mut dst = vec![filling; rows * cols];
        nd::decode(side, stream, &mut dst).map(|()| dst)
    });
    assert_eq!(one, other, "a byte of the destination was not written");
    let Ok(array) = BlockShape::new(&[rows, cols]).and_then(|shape| nd::Plan::new(side, Some(shape))) else { return };
    let content: Vec<u8> = stream.iter().copied().chain([0]).cycle().take(rows * cols).collect();
    let mut coded = vec![0; 2 * content.len() + 64];
    let Some(length) = nd::encode(array, &content, &mut coded) else { panic!("there was room enough") };
    let mut decoded = vec![FILLINGS[0]; content.len()];
    assert_eq!(nd::decode(side, &coded[..length], &mut decoded), Ok(()));
    assert!(decoded == content, "other bytes came back");
}

/// Any bytes are a header or give an error; a header that is accepted says sizes that fit together.
pub fn header(data: &[u8]) {
    let Ok(header) = Header::parse(data, data.len() as u64) else { return };
    assert!(header.typesize > 0);
    assert!(header.cbytes as usize >= header.len() && header.cbytes as usize <= data.len());
    assert!(header.nblocks(header.blocksize as usize) <= header.nbytes.max(header.blocksize) as usize);
    if header.is_extended() {
        let written = header.to_bytes();
        assert_eq!(Header::parse(&written, header.cbytes.into()), Ok(header), "written, it reads differently");
        if header.version >= 5 {
            assert_eq!(written, data[..EXTENDED_HEADER_LENGTH], "bytes of the header got lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{MAX_OVERHEAD, encode};
    use crate::params::{EncodeOptions, EncodeParams};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A chunk that has blocks, streams and a short last block.
    fn chunk(codec: Codec) -> Vec<u8> {
        let content: Vec<u8> = (0..1001_u32).flat_map(|n| (n * 7 / 3).to_le_bytes()).take(1001).collect();
        let options = EncodeOptions {
            codec: codec.id(),
            codec_meta: 0,
            clevel: 5,
            typesize: 4,
            blocksize: 256,
            splitmode: 1,
            filters: [0, 0, 0, 0, 0, 1],
            filters_meta: [0; 6],
            blosc1: false,
            shape: None,
            use_dict: false,
            nthreads: 1,
        };
        let params = EncodeParams::new(options, None).unwrap();
        let mut chunk = vec![0; content.len() + MAX_OVERHEAD];
        let length = encode(&content, &params, None, None, &mut chunk).unwrap();
        chunk.truncate(length);
        chunk
    }

    #[test]
    fn every_bit_of_a_header_can_be_wrong_and_it_can_end_anywhere() {
        for codec in Codec::ALL {
            let sound = chunk(codec);
            for bit in 0..8 * sound.len().min(200) {
                let mut damaged = sound.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                header(&damaged);
            }
            for length in 0..sound.len() {
                header(&sound[..length]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_give_an_error(data in vec(any::<u8>(), 0..300)) {
            header(&data);
            blosclz(&data);
            ndlz(&data);
        }

        #[test]
        fn any_content_comes_back(
            way in any::<[u8; 16]>(), seed in any::<u8>(), noise in vec(any::<u8>(), 0..2000), repeats in 1..8_usize,
        ) {
            let mut data = way.to_vec();
            for _ in 0..repeats {
                data.extend(&noise);
                data.extend([seed; 300]);
            }
            blosclz(&data);
            ndlz(&data);
        }
    }
}
