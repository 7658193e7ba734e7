//! What the fuzz targets promise, as functions that the unit tests below call as well.
//!
//! Each function takes any bytes whatever and panics if a promise is broken: [`chunk_decode`] and
//! [`range_decode`] that no chunk panics, hangs, takes memory beyond its memory budget or leaves a byte
//! of the destination unwritten; [`roundtrip`] that what goes in comes out; [`shaped`] the same of chunks that go by the shape of blocks;
//! [`boxes`] that what is read of an array is what is in its chunk; [`seals`] that a seal proves its
//! chunk and nothing else. The crate in `fuzz/` hands the fuzzer's bytes to them.
//!
//! What is promised of codecs and of headers alone is in `superchunk_engine::fuzzing`. Neither is part of an interface.

mod boxes;

use crate::read::{self, ReadOptions, Request};
use crate::seal::{self, SEAL_LENGTH, Status};
use superchunk_engine::Error;
use superchunk_engine::codecs::{Codec, NDLZ};
use superchunk_engine::encode::{self, MAX_OVERHEAD};
use superchunk_engine::header::Body;
use superchunk_engine::lazy;
use superchunk_engine::params::{EncodeOptions, EncodeParams};
use superchunk_engine::shape::BlockShape;
use superchunk_engine::source::Source;

use crate::source::ChunkLocation;

pub use boxes::boxes;

/// Contents that claim more bytes than this are read in part only.
const LARGEST_WHOLE: usize = 1 << 22;
/// Two fillings of a destination: a byte that comes out as both of them was never written.
const FILLINGS: [u8; 2] = [0xA5, 0x5A];

/// Read bytes `start..stop` of a chunk, twice, into destinations with different old contents.
fn read_twice(chunk: &[u8], start: usize, stop: usize, nthreads: usize) -> crate::Result<Vec<u8>> {
    let mut outcomes = FILLINGS.map(|filling| {
        let mut dst = vec![filling; stop - start];
        let requests =
            vec![Request { location: ChunkLocation::Bytes(chunk), nbytes: None, start: start as u64, dst: &mut dst }];
        let options = ReadOptions { nthreads, ..ReadOptions::default() };
        read::read(requests, options).map(|()| dst).map_err(|failure| failure.error)
    });
    // What is wrong with a stream may be said differently: decoders look at what they have written.
    let [one, other] = outcomes.each_ref().map(|outcome| outcome.as_ref().ok());
    assert_eq!(one, other, "a byte of the destination was not written");
    std::mem::replace(&mut outcomes[0], Ok(Vec::new()))
}

/// Any bytes decode or give an error, on one thread as on two, whole as in parts.
pub fn chunk_decode(data: &[u8]) {
    let described = lazy::describe(Source::Bytes(data));
    let lazy = lazy::lazy_chunk(Source::Bytes(data), 1, 2);
    let blocks = read::read_vlblocks(Source::Bytes(data), ReadOptions::default());
    let Ok(header) = described else {
        assert!(lazy.is_err(), "a lazy chunk was made of a header that is refused");
        assert!(blocks.is_err(), "blocks were read behind a header that is refused");
        return;
    };
    let nbytes = header.nbytes as usize;
    if nbytes > LARGEST_WHOLE {
        drop(read_twice(data, 0, 1000, 2));
        drop(read_twice(data, nbytes - 1000, nbytes, 1));
        return;
    }
    let whole = read_twice(data, 0, nbytes, 1);
    let threaded = read_twice(data, 0, nbytes, 2);
    assert_eq!(whole.as_ref().ok(), threaded.as_ref().ok(), "two threads read something else than one");
    if let Ok(blocks) = blocks {
        assert_eq!(header.body(), Body::VlBlocks);
        assert_eq!(Some(blocks.concat()), whole.ok(), "the blocks are not the chunk");
    }
}

/// Any range of any bytes is the slice of the whole, where there is a whole.
///
/// The first eight bytes of `data` are the range, the others the chunk.
pub fn range_decode(data: &[u8]) {
    let Some((range, chunk)) = data.split_first_chunk::<8>() else { return };
    let Ok(header) = lazy::describe(Source::Bytes(chunk)) else { return };
    let nbytes = header.nbytes as usize;
    let at = |raw: &[u8]| raw.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    let (start, length) = (at(&range[..4]), at(&range[4..]) % (LARGEST_WHOLE / 4));
    if start.checked_add(length).is_none_or(|stop| stop > nbytes) {
        let mut dst = vec![0; length];
        let location = ChunkLocation::Bytes(chunk);
        let requests = vec![Request { location, nbytes: None, start: start as u64, dst: &mut dst }];
        let outcome = read::read(requests, ReadOptions::default());
        assert!(outcome.is_err(), "a range outside the chunk was read");
        return;
    }
    let part = read_twice(chunk, start, start + length, 1 + length % 2);
    if nbytes <= LARGEST_WHOLE
        && let Ok(whole) = read_twice(chunk, 0, nbytes, 1)
    {
        assert_eq!(part.as_deref(), Ok(&whole[start..start + length]), "the range is not the slice");
    }
}

/// Any content comes back, compressed in any way; the bytes of the chunk do not depend on threads.
///
/// The first 16 bytes of `data` choose the way, the others are the content.
pub fn roundtrip(data: &[u8]) {
    let Some((way, content)) = data.split_first_chunk::<16>() else { return };
    let codec = Codec::ALL[usize::from(way[0]) % Codec::ALL.len()];
    let blosc1 = way[1] >= 240;
    let filters =
        [way[8], way[9], way[10], way[11], way[12], way[13]].map(|pick| [0, 1, 2, 3, 35][usize::from(pick % 5)]);
    let options = EncodeOptions {
        codec: codec.id(),
        codec_meta: 0,
        clevel: way[1] % 10,
        typesize: match way[2] {
            0 => 1 + usize::from(way[3]) * 5,
            typesize => usize::from(typesize % 33).max(1),
        },
        blocksize: if way[4] < 64 { 0 } else { usize::from(u16::from_le_bytes([way[5], way[6]])) },
        splitmode: 1 + way[7] % 4,
        // A chunk of Blosc1 has one filter at most, in the last slot.
        filters: if blosc1 { [0, 0, 0, 0, 0, filters[5] % 3] } else { filters },
        filters_meta: if blosc1 { [0; 6] } else { [0, way[14], 0, way[14] % 9, 0, way[15]] },
        blosc1,
        shape: None,
        use_dict: way[4] & 1 != 0 && codec.takes_dictionary() && !blosc1,
        nthreads: 1,
    };
    let itemsize = options.typesize;
    let encode_with = |nthreads| {
        let params = EncodeParams::new(EncodeOptions { nthreads, ..options }, None)?;
        let mut chunk = vec![0; content.len() + MAX_OVERHEAD];
        let length = encode::encode(content, &params, None, None, &mut chunk)?;
        chunk.truncate(length);
        Ok::<_, Error>(chunk)
    };
    // Pipelines that cannot be are refused before anything is written, whatever the threads.
    let (Ok(chunk), Ok(threaded)) = (encode_with(1), encode_with(3)) else {
        let params = EncodeParams::new(options, None);
        assert!(params.is_err(), "parameters were accepted, and then not");
        return;
    };
    assert_eq!(chunk, threaded, "the chunk depends on the number of threads");
    for nthreads in [1, 2] {
        let mut decoded = vec![FILLINGS[0]; content.len()];
        let requests =
            vec![Request { location: ChunkLocation::Bytes(&chunk), nbytes: None, start: 0, dst: &mut decoded }];
        let outcome =
            read::read(requests, ReadOptions { nthreads, itemsize: Some(itemsize), ..ReadOptions::default() });
        assert_eq!(outcome, Ok(()));
        assert!(decoded == content, "other bytes came back");
    }
}

/// Read all of a chunk with a shape, twice, into destinations with different old contents.
fn read_shaped(chunk: &[u8], nbytes: usize, shape: BlockShape, itemsize: usize) -> Option<Vec<u8>> {
    let [one, other] = FILLINGS.map(|filling| {
        let mut dst = vec![filling; nbytes];
        let requests = vec![Request { location: ChunkLocation::Bytes(chunk), nbytes: None, start: 0, dst: &mut dst }];
        let options =
            ReadOptions { shape: Some(shape), itemsize: Some(itemsize), nthreads: 2, ..ReadOptions::default() };
        read::read(requests, options).is_ok().then_some(dst)
    });
    assert_eq!(one, other, "a byte of the destination was not written");
    one
}

/// Any content comes back that is filtered or compressed by the shape of its blocks, but for what NDMEAN levels;
/// a chunk that another byte is put into decodes or gives an error, with the same shape as with another one.
///
/// The first 16 bytes of `data` choose the way, the others are the content.
pub fn shaped(data: &[u8]) {
    let Some((way, content)) = data.split_first_chunk::<16>() else { return };
    let ndim = usize::from(way[0] % 4) + 1;
    let dims: Vec<usize> = way[1..=ndim].iter().map(|side| usize::from(side % 12) + 1).collect();
    let typesize = [1, 2, 4, 8, 300][usize::from(way[5] % 5)];
    let Ok(shape) = BlockShape::new(&dims) else { panic!("a shape was refused") };
    let pick = |choice: u8| [0, 1, 2, 32, 33, 32][usize::from(choice % 6)];
    let options = EncodeOptions {
        codec: if way[6] & 1 == 0 { 5 } else { NDLZ },
        codec_meta: if way[6] & 2 == 0 { 4 } else { 8 },
        clevel: 1 + way[7] % 9,
        typesize,
        blocksize: shape.items() * typesize,
        splitmode: 1 + way[8] % 4,
        filters: [pick(way[9]), pick(way[10]), pick(way[11]), 0, 0, 0],
        filters_meta: [way[12] % 6, way[13] % 6, way[14] % 6, 0, 0, 0].map(|meta| meta + u8::from(way[15] > 99)),
        blosc1: false,
        shape: Some(shape),
        use_dict: false,
        nthreads: 1,
    };
    let Ok(params) = EncodeParams::new(options, None) else { return };
    let mut content = content.to_vec();
    let whole =
        content.len().next_multiple_of(options.blocksize).min(LARGEST_WHOLE / options.blocksize * options.blocksize);
    content.resize(whole, 0);
    let mut chunk = vec![0; content.len() + MAX_OVERHEAD];
    let Ok(length) = encode::encode(&content, &params, None, None, &mut chunk) else {
        panic!("whole blocks were refused")
    };
    chunk.truncate(length);
    let decoded = read_shaped(&chunk, content.len(), shape, typesize);
    assert!(decoded.is_some(), "what was written cannot be read");
    assert!(options.filters.contains(&33) || decoded == Some(content), "other bytes came back");
    let Ok(header) = lazy::describe(Source::Bytes(&chunk)) else { panic!("no header") };
    if let Ok(other) = BlockShape::new(&[&dims[..], &[2]].concat()) {
        drop(read_shaped(&chunk, header.nbytes as usize, other, typesize));
    }
    let at = usize::from(u16::from_le_bytes([way[14], way[15]])) % length;
    chunk[at] ^= way[13] | 1;
    if let Ok(header) = lazy::describe(Source::Bytes(&chunk))
        && header.nbytes as usize <= LARGEST_WHOLE
    {
        drop(read_shaped(&chunk, header.nbytes as usize, shape, typesize));
    }
}

/// Any bytes have a verdict; a chunk that can be sealed is sound with its seal, and not with a bit of either changed.
///
/// The first four bytes of `data` choose the bit, the others are the chunk.
pub fn seals(data: &[u8]) {
    let Some((pick, bytes)) = data.split_first_chunk::<4>() else { return };
    let check = |bytes: &[u8]| {
        let locations = [ChunkLocation::Bytes(bytes); 2];
        let Ok(verdicts) = seal::check_all(&locations, 2, None) else { panic!("bytes in memory were not checked") };
        assert_eq!(verdicts[0], verdicts[1], "the same bytes have two verdicts");
        verdicts[0]
    };
    let found = check(bytes);
    let Ok(seal) = seal::seal(bytes) else {
        assert!(matches!(found.status, Status::Unreadable | Status::Beyond), "a chunk is read that cannot be sealed");
        return;
    };
    let cbytes = found.cbytes as usize;
    let mut sealed = [&bytes[..cbytes], &seal].concat();
    assert_eq!(check(&sealed).status, Status::Sound);
    assert_eq!(check(&sealed[..cbytes]).status, Status::NotSealed);
    assert_eq!(check(&sealed[..cbytes + SEAL_LENGTH - 1]).status, Status::NotSealed);
    let bit = u32::from_le_bytes(*pick) as usize % (8 * sealed.len());
    sealed[bit / 8] ^= 1 << (bit % 8);
    assert_ne!(check(&sealed).status, Status::Sound, "a changed bit was not noticed");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A chunk that has blocks, streams and a short last block.
    fn chunk(codec: Codec, content: &[u8]) -> Vec<u8> {
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
        let length = encode::encode(content, &params, None, None, &mut chunk).unwrap();
        chunk.truncate(length);
        chunk
    }

    /// A box of several blocks.
    const WAY: [u8; 16] = [7, 1, 9, 0, 1, 1, 60, 250, 0, 3, 4, 60, 1, 2, 0, 0];

    fn content() -> Vec<u8> {
        (0..1001_u32).flat_map(|n| (n * 7 / 3).to_le_bytes()).take(4001).collect()
    }

    #[test]
    fn every_bit_of_a_chunk_can_be_wrong() {
        for codec in Codec::ALL {
            let sound = chunk(codec, &content()[..1001]);
            for bit in 0..8 * sound.len().min(200) {
                let mut damaged = sound.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                chunk_decode(&damaged);
                boxes(&[WAY.as_slice(), &damaged].concat());
            }
            for bit in 0..8 * u32::try_from(sound.len().min(200)).unwrap() {
                seals(&[&bit.to_le_bytes(), sound.as_slice()].concat());
            }
        }
    }

    #[test]
    fn a_chunk_can_end_anywhere() {
        for codec in Codec::ALL {
            let sound = chunk(codec, &content()[..1001]);
            for length in 0..sound.len() {
                chunk_decode(&sound[..length]);
                seals(&sound[..length]);
                seals(&[&[7; 4], &sound[..length]].concat());
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_give_an_error(data in vec(any::<u8>(), 0..300)) {
            chunk_decode(&data);
            shaped(&data);
            seals(&data);
        }

        #[test]
        fn any_damage_decodes_or_gives_an_error(
            codec in 0..Codec::ALL.len(),
            edits in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            way in any::<[u8; 16]>(),
        ) {
            let mut damaged = chunk(Codec::ALL[codec], &content()[..3840]);
            for (index, byte) in edits {
                let at = index.index(damaged.len());
                damaged[at] = byte;
            }
            chunk_decode(&damaged);
            boxes(&[way.as_slice(), &damaged].concat());
        }

        #[test]
        fn any_range_is_the_slice(codec in 0..Codec::ALL.len(), start in 0..4200_u32, length in 0..4200_u32) {
            let mut data = start.to_le_bytes().to_vec();
            data.extend(length.to_le_bytes());
            data.extend(chunk(Codec::ALL[codec], &content()));
            range_decode(&data);
        }

        #[test]
        fn any_content_comes_back_from_any_way(
            way in any::<[u8; 16]>(), seed in any::<u8>(), noise in vec(any::<u8>(), 0..2000), repeats in 1..8_usize,
        ) {
            let mut data = way.to_vec();
            for _ in 0..repeats {
                data.extend(&noise);
                data.extend([seed; 300]);
            }
            roundtrip(&data);
            shaped(&data);
        }
    }
}
