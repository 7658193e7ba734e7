//! How a chunk is written: codec, filters, block size, checked once.
//!
//! Source: docs/format/chunk.md, sections "Blocks and streams" and "Block size".

use crate::codecs::{self, Codec, ndlz};
use crate::error::{Error, Result};
use crate::filters::{self, BitshuffleRule, Pipeline};
use crate::limits::{EXTENDED_HEADER_LENGTH, MAX_BLOCKSIZE, MAX_TYPESIZE, MIN_HEADER_LENGTH};
use crate::shape::BlockShape;
use crate::user::User;

/// When blocks are split into one stream for each byte of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SplitMode {
    /// Always.
    Always = 1,
    /// Never.
    Never = 2,
    /// When it is likely to help.
    Auto = 3,
    /// The same as `Auto`.
    ForwardCompat = 4,
}

/// Most streams of a block that `Auto` makes.
pub const MAX_AUTO_STREAMS: usize = 16;
/// Least bytes of a stream that `Auto` makes.
pub const MIN_AUTO_STREAM: usize = 32;

/// Least bytes of a stream in a chunk of Blosc1.
pub const MIN_BLOSC1_STREAM: usize = 128;

/// Raw parameters, as the caller gives them.
#[derive(Debug, Clone, Copy)]
pub struct EncodeOptions {
    /// Codec id.
    pub codec: u8,
    /// Codec parameter.
    pub codec_meta: u8,
    /// Compression level, 0 to 9.
    pub clevel: u8,
    /// Item size in bytes; chunks record 1 for more than 255.
    pub typesize: usize,
    /// Block size in bytes, 0 for automatic.
    pub blocksize: usize,
    /// Split mode.
    pub splitmode: u8,
    /// Filter ids, slot 0 first.
    pub filters: [u8; 6],
    /// Filter parameters.
    pub filters_meta: [u8; 6],
    /// The shape of the container's blocks, where it is one of arrays.
    pub shape: Option<BlockShape>,
    /// Whether to train and use a dictionary.
    pub use_dict: bool,
    /// Write a chunk of Blosc1: a short header, no special values, at most one (bit)shuffle in the last slot.
    pub blosc1: bool,
    /// Threads to use at most.
    pub nthreads: usize,
}

/// Which codec compresses streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    BuiltIn(Codec),
    NdLz(ndlz::Plan),
    User,
}

/// Checked parameters.
#[derive(Debug)]
pub struct EncodeParams {
    pub(crate) options: EncodeOptions,
    pub(crate) compressor: Compressor,
    pub(crate) splitmode: SplitMode,
    pub(crate) pipeline: Pipeline,
}

fn argument(name: &'static str, expected: &'static str, found: usize) -> Error {
    Error::Argument { name, expected: expected.into(), found: i64::try_from(found).unwrap_or(i64::MAX) }
}

impl EncodeParams {
    /// Check `options`; `user` supplies codecs and filters that are not built in.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] naming the option and its range; [`Error::Unsupported`] for a codec or
    /// filter that is not available.
    pub fn new(options: EncodeOptions, user: Option<&dyn User>) -> Result<Self> {
        if options.clevel > 9 {
            return Err(argument("clevel", "0 to 9", options.clevel.into()));
        }
        if !(1..=MAX_TYPESIZE).contains(&options.typesize) {
            return Err(argument("typesize", "1 to 536866816", options.typesize));
        }
        if options.blocksize > MAX_BLOCKSIZE {
            return Err(argument("blocksize", "0 (automatic) to 536866816", options.blocksize));
        }
        let splitmode = match options.splitmode {
            1 => SplitMode::Always,
            2 => SplitMode::Never,
            3 => SplitMode::Auto,
            4 => SplitMode::ForwardCompat,
            other => return Err(argument("splitmode", "1 to 4", other.into())),
        };
        let compressor = if user.is_some_and(|user| user.has_codec(options.codec)) {
            Compressor::User
        } else if options.codec == codecs::NDLZ {
            Compressor::NdLz(ndlz::Plan::new(options.codec_meta, options.shape)?)
        } else {
            Compressor::BuiltIn(Codec::from_id(options.codec)?)
        };
        if options.use_dict && !matches!(compressor, Compressor::BuiltIn(Codec::Lz4 | Codec::Lz4Hc | Codec::Zstd)) {
            let name = codecs::name_of_id(options.codec);
            return Err(Error::Argument {
                name: "use_dict",
                expected: format!("a codec with dictionaries (lz4, lz4hc, zstd), not {name}").into(),
                found: 1,
            });
        }
        if options.blosc1 {
            check_blosc1(&options, compressor)?;
        }
        let typesize = stored_typesize(options.typesize);
        let rule = if options.blosc1 { BitshuffleRule::Version2 } else { BitshuffleRule::Current };
        let pipeline = Pipeline::for_writing(
            options.filters,
            options.filters_meta,
            typesize.into(),
            Some(options.typesize),
            options.shape,
            rule,
            user.map(User::filters),
        )?;
        let params = Self { options, compressor, splitmode, pipeline };
        params.check_shape()?;
        Ok(params)
    }

    /// The shape of blocks, where a codec or filter goes by it.
    #[must_use]
    pub fn shape_in_use(&self) -> Option<BlockShape> {
        let by_shape = matches!(self.compressor, Compressor::NdLz(_)) || self.pipeline.needs_shape();
        self.options.shape.filter(|_| by_shape)
    }

    /// Check that blocks have the shape, where a codec or filter goes by it.
    fn check_shape(&self) -> Result<()> {
        let options = &self.options;
        let plan = if let Compressor::NdLz(plan) = self.compressor { Some(plan) } else { None };
        let Some(shape) = self.shape_in_use() else { return Ok(()) };
        let nbytes = shape.items().saturating_mul(options.typesize);
        if options.blocksize != nbytes {
            let expected = format!("{nbytes}, blocks of shape {shape} with items of {} bytes", options.typesize);
            let found = i64::try_from(options.blocksize).unwrap_or(i64::MAX);
            return Err(Error::Argument { name: "blocksize", expected: expected.into(), found });
        }
        if let Some(plan) = plan
            && nbytes / self.nstreams(nbytes) != plan.nbytes()
        {
            let expected = "1, or shuffled and split into streams of one byte of each item, with ndlz";
            return Err(argument("typesize", expected, options.typesize));
        }
        Ok(())
    }

    /// Whether blocks of `blocksize` bytes with items of `typesize` are split.
    fn splits(&self, typesize: usize, blocksize: usize) -> bool {
        match self.splitmode {
            SplitMode::Always => true,
            SplitMode::Never => false,
            // A stream has to be an array of bytes.
            SplitMode::Auto | SplitMode::ForwardCompat if matches!(self.compressor, Compressor::NdLz(_)) => {
                typesize > 1 && self.options.filters.contains(&filters::SHUFFLE)
            }
            SplitMode::Auto | SplitMode::ForwardCompat if self.compressor == Compressor::User => false,
            // All writers of Blosc1 split whatever the filter; the geometry is looked at in `nstreams`.
            SplitMode::Auto | SplitMode::ForwardCompat if self.options.blosc1 => {
                self.compressor != Compressor::BuiltIn(Codec::Zstd)
            }
            SplitMode::Auto | SplitMode::ForwardCompat => {
                let planes = match self.compressor {
                    Compressor::BuiltIn(Codec::Lz4Hc | Codec::Zlib) => false,
                    Compressor::BuiltIn(Codec::Zstd) => self.options.clevel <= 5,
                    _ => true,
                };
                planes && self.is_split_by_planes(typesize, blocksize)
            }
        }
    }

    /// Whether blocks are shuffled and their planes are long enough for streams of their own.
    fn is_split_by_planes(&self, typesize: usize, blocksize: usize) -> bool {
        self.options.filters.contains(&filters::SHUFFLE)
            && typesize <= MAX_AUTO_STREAMS
            && blocksize / typesize >= MIN_AUTO_STREAM
    }

    /// Whether the codec takes its time, and larger blocks.
    fn is_thorough(&self) -> bool {
        matches!(self.compressor, Compressor::BuiltIn(Codec::Lz4Hc | Codec::Zlib | Codec::Zstd))
    }

    /// Into how many streams a full block of a chunk is split.
    pub(crate) fn nstreams(&self, blocksize: usize) -> usize {
        let typesize = usize::from(stored_typesize(self.options.typesize));
        let whole = blocksize > 0 && blocksize.is_multiple_of(typesize) && self.may_split(typesize, blocksize);
        if whole && self.splits(typesize, blocksize) { typesize } else { 1 }
    }

    /// Into how many streams a full block may be split where that is measured: LZ4HC and zlib leave blocks whole in
    /// C-Blosc2, and planes that are incompressible or constant are better off alone.
    pub(crate) fn other_nstreams(&self, blocksize: usize) -> usize {
        let typesize = usize::from(stored_typesize(self.options.typesize));
        let own = self.nstreams(blocksize);
        let is_open = matches!(self.splitmode, SplitMode::Auto | SplitMode::ForwardCompat)
            && matches!(self.compressor, Compressor::BuiltIn(Codec::Lz4Hc | Codec::Zlib))
            && !self.options.blosc1
            && blocksize.is_multiple_of(typesize)
            && self.is_split_by_planes(typesize, blocksize);
        if is_open { typesize } else { own }
    }

    /// The level that the codec gets. BloscLZ of C-Blosc does not decline what that of C-Blosc2 declines from level 3 on.
    pub(crate) fn search_level(&self) -> u8 {
        let keeps = self.options.blosc1 && self.compressor == Compressor::BuiltIn(Codec::BloscLz);
        if keeps && self.options.clevel >= 3 { self.options.clevel.max(7) } else { self.options.clevel }
    }

    /// Most bytes by which a chunk is longer than its data.
    #[must_use]
    pub fn overhead(&self) -> usize {
        if self.options.blosc1 { MIN_HEADER_LENGTH } else { EXTENDED_HEADER_LENGTH }
    }

    /// Whether readers know split blocks of this geometry. Those of Blosc1 go by it, whatever the flag says.
    fn may_split(&self, typesize: usize, blocksize: usize) -> bool {
        !self.options.blosc1 || typesize <= MAX_AUTO_STREAMS && blocksize / typesize >= MIN_BLOSC1_STREAM
    }

    /// Whether a block that the filters turn into zeros is sure to be one of zeros.
    pub(crate) fn zeros_stay_zeros(&self) -> bool {
        self.options.filters.iter().all(|&id| id < filters::FIRST_USER)
    }

    /// Return the block size, in bytes, that a chunk of `nbytes` gets.
    #[must_use]
    pub fn blocksize_for(&self, nbytes: usize) -> usize {
        const KIB: usize = 1024;
        let typesize = self.options.typesize;
        let clevel = usize::from(self.options.clevel);
        if nbytes < typesize {
            return 1;
        }
        let thorough = self.is_thorough();
        let quarters = [1, 2, 4, 8, 16, 16, 32, 32, 32, if thorough { 64 } else { 32 }][clevel];
        let whole = 32 * KIB * (if thorough { 2 } else { 1 }) * quarters / 4;
        let blocksize = if self.options.blocksize > 0 {
            self.options.blocksize
        } else if self.options.blosc1 && nbytes >= 32 * KIB {
            // C-Blosc has other blocks than C-Blosc2: streams up to 256 KiB, blocks up to 1 MiB.
            if self.splits(typesize, nbytes) && self.may_split(typesize, nbytes) {
                (whole.min(256 * KIB) * typesize).clamp(64 * KIB, KIB * KIB)
            } else {
                whole
            }
        } else if self.options.blosc1 {
            nbytes
        } else if clevel > 0 && self.splits(typesize, nbytes) {
            let stream = [0, 32, 32, 32, 64, 64, 64, 128, 256, 512][clevel] * KIB;
            (stream * typesize).clamp(32 * KIB, 4 * KIB * KIB)
        } else if nbytes >= 32 * KIB {
            whole
        } else {
            nbytes
        };
        let blocksize = blocksize.min(nbytes);
        if blocksize > typesize { blocksize - blocksize % typesize } else { blocksize.max(1) }
    }
}

/// What the short header of Blosc1 cannot say is refused.
fn check_blosc1(options: &EncodeOptions, compressor: Compressor) -> Result<()> {
    if !matches!(compressor, Compressor::BuiltIn(_)) {
        return Err(argument("codec", "a codec of Blosc1 (0, 1, 2, 4 or 5)", options.codec.into()));
    }
    if options.use_dict {
        return Err(argument("use_dict", "no dictionary in a chunk of Blosc1", 1));
    }
    let [first @ .., last] = options.filters;
    let known = [filters::NOFILTER, filters::SHUFFLE, filters::BITSHUFFLE];
    if let Some(&other) =
        first.iter().find(|&&id| id != filters::NOFILTER).or(Some(&last).filter(|id| !known.contains(id)))
    {
        return Err(argument("filters", "SHUFFLE or BITSHUFFLE in the last slot of a chunk of Blosc1", other.into()));
    }
    if let Some(&meta) = options.filters_meta.iter().find(|&&meta| meta != 0) {
        return Err(argument("filters_meta", "0 in a chunk of Blosc1", meta.into()));
    }
    Ok(())
}

/// The item size that a chunk's header records.
#[must_use]
pub fn stored_typesize(typesize: usize) -> u8 {
    u8::try_from(typesize).unwrap_or(1)
}
