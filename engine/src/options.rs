//! Typed options of [`compress`](crate::compress).

use crate::codecs::Codec;
use crate::error::{Error, Result};
use crate::filters;
use crate::limits::MAX_FILTERS;
use crate::params::{EncodeOptions, SplitMode};

/// A filter, applied to each block before its codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// Byte 0 of all items, then byte 1 of all items, and so on.
    Shuffle,
    /// Bit 0 of all items, then bit 1 of all items, and so on.
    Bitshuffle,
    /// XOR with the first block; before all other filters, and once.
    Delta,
    /// Keep this many bits of the mantissa of 4- or 8-byte floats, or clear minus this many. Lossy.
    TruncPrec(i8),
    /// Keep this many bits of integers of 1, 2, 4 or 8 bytes, or clear minus this many. Lossy.
    IntTrunc(i8),
    /// Differences of neighbouring bytes within each byte plane; to be put after [`Filter::Shuffle`].
    Bytedelta,
}

impl Filter {
    /// The filter's number in a chunk, and its parameter.
    #[must_use]
    pub const fn id_and_meta(self) -> (u8, u8) {
        match self {
            Self::Shuffle => (filters::SHUFFLE, 0),
            Self::Bitshuffle => (filters::BITSHUFFLE, 0),
            Self::Delta => (filters::DELTA, 0),
            Self::TruncPrec(bits) => (filters::TRUNC_PREC, bits.cast_unsigned()),
            Self::IntTrunc(bits) => (filters::INT_TRUNC, bits.cast_unsigned()),
            Self::Bytedelta => (filters::BYTEDELTA, 0),
        }
    }
}

/// How data are compressed.
///
/// ```
/// use superchunk_engine::codecs::Codec;
/// use superchunk_engine::{Filter, Options};
///
/// let options = Options { codec: Codec::Lz4, typesize: 4, filters: vec![Filter::Bitshuffle], ..Options::default() };
/// assert_eq!(options.level, 5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The codec. Default: Zstandard, or LZ4 in a build without it.
    pub codec: Codec,
    /// The compression level: 0 stores the data uncompressed, 9 is the slowest. Default: 5.
    pub level: u8,
    /// The size of an item in bytes, which shuffling filters go by. Default: 8.
    pub typesize: usize,
    /// The filters, at most six, in the order in which they are applied. Default: [`Filter::Shuffle`].
    pub filters: Vec<Filter>,
    /// When a block is split into one stream for each byte of an item. Default: [`SplitMode::Auto`].
    pub split: SplitMode,
    /// The size of a block in bytes. Default: `None`, chosen from codec, level and length.
    pub blocksize: Option<usize>,
    /// Whether to train a dictionary for all blocks. LZ4, LZ4HC and Zstandard can use one. Default: false.
    pub dictionary: bool,
    /// Threads to use at most. The chunk is the same for every number. Default: 1.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            codec: if cfg!(feature = "zstd") { Codec::Zstd } else { Codec::Lz4 },
            level: 5,
            typesize: 8,
            filters: vec![Filter::Shuffle],
            split: SplitMode::Auto,
            blocksize: None,
            dictionary: false,
            threads: 1,
        }
    }
}

impl Options {
    /// The same as numbers of the format. The last filter is in the last slot.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for more than six filters, and for a block size of 0.
    pub fn to_raw(&self) -> Result<EncodeOptions> {
        if self.filters.len() > MAX_FILTERS {
            let found = i64::try_from(self.filters.len()).unwrap_or(i64::MAX);
            return Err(Error::Argument { name: "filters", expected: "at most 6".into(), found });
        }
        if self.blocksize == Some(0) {
            return Err(Error::Argument { name: "blocksize", expected: "at least 1 byte, or None".into(), found: 0 });
        }
        let (mut ids, mut metas) = ([filters::NOFILTER; MAX_FILTERS], [0; MAX_FILTERS]);
        for (filter, slot) in self.filters.iter().zip(MAX_FILTERS - self.filters.len()..) {
            (ids[slot], metas[slot]) = filter.id_and_meta();
        }
        Ok(EncodeOptions {
            codec: self.codec.id(),
            codec_meta: 0,
            clevel: self.level,
            typesize: self.typesize,
            blocksize: self.blocksize.unwrap_or(0),
            splitmode: self.split as u8,
            filters: ids,
            filters_meta: metas,
            shape: None,
            use_dict: self.dictionary,
            blosc1: false,
            nthreads: self.threads,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_filter_is_in_the_last_slot() {
        let options = Options { filters: vec![Filter::TruncPrec(-3), Filter::Shuffle], ..Options::default() };
        let raw = options.to_raw().unwrap();
        assert_eq!((raw.filters, raw.filters_meta), ([0, 0, 0, 0, 4, 1], [0, 0, 0, 0, 0xFD, 0]));
    }

    #[test]
    fn what_the_format_cannot_say_is_refused() {
        let many = Options { filters: vec![Filter::Delta; 7], ..Options::default() };
        assert!(matches!(many.to_raw(), Err(Error::Argument { name: "filters", found: 7, .. })));
        let none = Options { blocksize: Some(0), ..Options::default() };
        assert!(matches!(none.to_raw(), Err(Error::Argument { name: "blocksize", found: 0, .. })));
    }
}
