//! Whole chunks in one call each.

use crate::chunk::Chunk;
use crate::encode::encode;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::params::EncodeParams;

/// Compress `data` into one chunk. A chunk holds at most [`MAX_BUFFERSIZE`](crate::limits::MAX_BUFFERSIZE) bytes.
///
/// # Errors
///
/// [`Error::Argument`] naming the option that is out of range, or for too many bytes; [`Error::Unsupported`] for a
/// codec that is not built in; [`Error::OutOfMemory`].
pub fn compress(data: &[u8], options: &Options) -> Result<Vec<u8>> {
    let params = EncodeParams::new(options.to_raw()?, None)?;
    let capacity = data.len().saturating_add(params.overhead());
    let mut chunk = Vec::new();
    chunk.try_reserve_exact(capacity).map_err(|_| Error::OutOfMemory { needed: capacity as u64 })?;
    chunk.resize(capacity, 0);
    let length = encode(data, &params, None, None, &mut chunk)?;
    chunk.truncate(length);
    Ok(chunk)
}

/// Decompress the chunk that `chunk` begins with; what follows it is ignored.
///
/// # Errors
///
/// Whatever is wrong with the chunk; [`Error::Unsupported`] for a codec or filter that is not built in;
/// [`Error::OutOfMemory`].
pub fn decompress(chunk: &[u8]) -> Result<Vec<u8>> {
    let chunk = Chunk::open(chunk)?;
    chunk.read(0..chunk.header.nbytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::Codec;
    use crate::options::Filter;
    use crate::params::SplitMode;
    use proptest::prelude::*;

    fn filter() -> impl Strategy<Value = Filter> {
        prop_oneof![Just(Filter::Shuffle), Just(Filter::Bitshuffle), Just(Filter::Bytedelta)]
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out_whole_and_in_parts(
            data in proptest::collection::vec(0..4_u8, 0..5000),
            (ncodec, level, typesize) in (0..Codec::ALL.len(), 0..10_u8, 1..20_usize),
            (delta, filters) in (any::<bool>(), proptest::collection::vec(filter(), 0..6)),
            blocksize in prop_oneof![Just(None), (32..2000_usize).prop_map(Some)],
            (from, to) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let codec = Codec::ALL[ncodec];
            let filters = delta.then_some(Filter::Delta).into_iter().chain(filters).collect();
            let options = Options { codec, level, typesize, filters, blocksize, ..Options::default() };
            let mut chunk = compress(&data, &options).unwrap();
            prop_assert_eq!(&decompress(&chunk).unwrap(), &data);
            chunk.extend([7; 9]);
            let (from, to) = (from.index(data.len() + 1), to.index(data.len() + 1));
            let range = from.min(to)..from.max(to);
            prop_assert_eq!(Chunk::open(&chunk).unwrap().read(range.clone()).unwrap(), &data[range]);
        }
    }

    #[test]
    fn ranges_outside_the_content_are_refused() {
        let chunk = compress(&[1; 100], &Options::default()).unwrap();
        let chunk = Chunk::open(&chunk).unwrap();
        assert!(matches!(chunk.read(50..101), Err(Error::Argument { name: "stop", found: 101, .. })));
        assert!(matches!(chunk.read(usize::MAX - 1..usize::MAX), Err(Error::Argument { name: "stop", .. })));
        assert_eq!(chunk.read(100..100), Ok(Vec::new()));
    }

    #[test]
    fn options_out_of_range_are_named() {
        let refused = |options: &Options| match compress(&[0; 100], options) {
            Err(Error::Argument { name, .. }) => name,
            _ => "nothing",
        };
        assert_eq!(refused(&Options { level: 10, ..Options::default() }), "clevel");
        assert_eq!(refused(&Options { typesize: 0, ..Options::default() }), "typesize");
        assert_eq!(
            refused(&Options { filters: vec![Filter::Shuffle, Filter::Delta], ..Options::default() }),
            "filters"
        );
        assert_eq!(refused(&Options { codec: Codec::Zlib, dictionary: true, ..Options::default() }), "use_dict");
        assert_eq!(refused(&Options { split: SplitMode::Never, threads: 0, ..Options::default() }), "nothing");
    }

    #[test]
    fn a_chunk_that_ends_early_is_an_error() {
        let data: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        let chunk = compress(&data, &Options { typesize: 4, ..Options::default() }).unwrap();
        for length in (0..chunk.len()).step_by(7) {
            assert!(decompress(&chunk[..length]).is_err(), "{length}");
        }
    }
}
