//! The header that opens every chunk.
//!
//! ```text
//! offset  bytes  field         all integers little endian
//! 0       1      version
//! 1       1      versionlz
//! 2       1      flags         0x05 shuffle bits: both set = extended header · 0x02 memcpyed
//!                              0x08 delta · 0x10 one stream per block · 0xE0 codec format
//! 3       1      typesize
//! 4       4      nbytes
//! 8       4      blocksize     number of blocks in a chunk with variable-length blocks
//! 12      4      cbytes
//! 16      6      filters       from here on only in an extended header
//! 22      1      udcodec
//! 23      1      codec_meta
//! 24      6      filters_meta
//! 30      1      blosc2_flags2 bit 0: variable-length blocks
//! 31      1      blosc2_flags  bit 0 dictionary · bit 3 lazy · bits 4-6 special value · bit 7 instrumented
//! ```
//!
//! Parses and writes these bytes only; what follows them is `chunk`'s work. A [`Header`] that
//! exists has passed every check that needs no other byte of the chunk.
//!
//! Source: docs/format/chunk.md, section "Header".

use crate::codecs::CodecFormat;
use crate::error::{Error, Result};
use crate::filters;
use crate::limits::{EXTENDED_HEADER_LENGTH, MAX_FILTERS, MAX_TYPESIZE, MIN_HEADER_LENGTH};

/// The version of Blosc1, always with a short header.
pub const VERSION_BLOSC1: u8 = 2;
/// The version that ordinary chunks are written with.
pub const VERSION_STABLE: u8 = 5;
/// The version of chunks with variable-length blocks, the newest there is.
pub const VERSION_VLBLOCKS: u8 = 6;
/// The highest first byte that is taken for the version of a newer chunk, if sizes follow that fit the chunk.
const NEWEST_THINKABLE: u8 = 15;

/// Both legacy shuffle bits: the header is extended.
pub const FLAG_EXTENDED: u8 = 0x05;
/// Byte shuffle, in a short header.
pub const FLAG_SHUFFLE: u8 = 0x01;
/// The body is the uncompressed data.
pub const FLAG_MEMCPYED: u8 = 0x02;
/// Bit shuffle, in a short header.
pub const FLAG_BITSHUFFLE: u8 = 0x04;
/// DELTA is in the pipeline.
pub const FLAG_DELTA: u8 = 0x08;
/// One stream per block.
pub const FLAG_DONT_SPLIT: u8 = 0x10;

/// `blosc2_flags`: a dictionary follows the block table.
pub const FLAG2_USEDICT: u8 = 0x01;
/// `blosc2_flags`: the chunk is lazy, which no stored chunk is.
pub const FLAG2_LAZY: u8 = 0x08;
/// `blosc2_flags`: streams hold timing records.
pub const FLAG2_INSTRUMENTED: u8 = 0x80;
/// `blosc2_flags2`: blocks have lengths of their own.
pub const FLAG3_VLBLOCKS: u8 = 0x01;

/// What a whole chunk of one value repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Special {
    /// Zero bytes.
    Zero = 1,
    /// Quiet NaNs of 4 or 8 bytes.
    Nan = 2,
    /// One item, stored behind the header.
    Value = 3,
    /// Anything; read as zeros.
    Uninit = 4,
}

impl Special {
    /// Return the special value of an id, 1 to 4.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Zero),
            2 => Some(Self::Nan),
            3 => Some(Self::Value),
            4 => Some(Self::Uninit),
            _ => None,
        }
    }
}

/// What the bytes behind the header are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// One value, repeated.
    Special(Special),
    /// The uncompressed data.
    Memcpyed,
    /// Nothing.
    Empty,
    /// A table, then blocks with lengths of their own.
    VlBlocks,
    /// A table, then blocks of equal length.
    Blocks,
}

/// A checked header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Chunk format version.
    pub version: u8,
    /// Version of the codec's stream format; informative.
    pub versionlz: u8,
    /// The first flag byte.
    pub flags: u8,
    /// Item size in bytes as the chunk records it, 1 to 255.
    pub typesize: u8,
    /// Uncompressed bytes.
    pub nbytes: u32,
    /// Uncompressed bytes of a block, as stored; a count in a chunk with variable-length blocks.
    pub blocksize: u32,
    /// Bytes of the whole chunk.
    pub cbytes: u32,
    /// Filter ids, slot 0 first.
    pub filters: [u8; MAX_FILTERS],
    /// Codec id; of a short header, the id that its format stands for.
    pub udcodec: u8,
    /// Codec parameter.
    pub codec_meta: u8,
    /// Filter parameters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Byte 30.
    pub blosc2_flags2: u8,
    /// Byte 31.
    pub blosc2_flags: u8,
}

fn field(field: &'static str, at: u64, expected: impl Into<std::borrow::Cow<'static, str>>, found: i64) -> Error {
    Error::Field { field, at, expected: expected.into(), found }
}

impl Header {
    /// Read the header at the start of `raw`, which is the chunk or at least its first 32 bytes
    /// (16 for a short header); `available` is how many bytes the chunk may extend over.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] or [`Error::Field`] naming the first field that breaks the format.
    pub fn parse(raw: &[u8], available: u64) -> Result<Self> {
        let header = Self::parse_any(raw, available)?;
        if header.is_extended() && header.blosc2_flags & FLAG2_LAZY != 0 {
            return Err(field("blosc2_flags", 31, "a stored chunk (bit 3, lazy, clear)", header.blosc2_flags.into()));
        }
        Ok(header)
    }

    fn parse_any(raw: &[u8], available: u64) -> Result<Self> {
        let Some(short) = raw.first_chunk::<MIN_HEADER_LENGTH>() else {
            return Err(Error::Truncated {
                what: "chunk header",
                at: 0,
                needed: MIN_HEADER_LENGTH as u64,
                got: raw.len() as u64,
            });
        };
        let int = |at: usize| i32::from_le_bytes([short[at], short[at + 1], short[at + 2], short[at + 3]]);
        let (version, versionlz, flags, typesize) = (short[0], short[1], short[2], short[3]);
        let (nbytes, blocksize, cbytes) = (int(4), int(8), int(12));
        if version == 0 || version > VERSION_VLBLOCKS {
            // A later version keeps its sizes where they are, and counts on by one; anything else begins no chunk.
            let fits =
                u64::try_from(cbytes).is_ok_and(|cbytes| (MIN_HEADER_LENGTH as u64..=available).contains(&cbytes));
            if version == 0 || (version <= NEWEST_THINKABLE && nbytes >= 0 && blocksize > 0 && fits) {
                return Err(field("chunk version", 0, "1 to 6", version.into()));
            }
            return Err(field("chunk version, its first byte,", 0, "1 to 6, as all chunks begin", version.into()));
        }
        if typesize == 0 {
            return Err(field("typesize", 3, "1 to 255", 0));
        }
        if !(0..=2_147_483_615).contains(&nbytes) {
            return Err(field("nbytes", 4, "0 to 2147483615", nbytes.into()));
        }
        if !(1..=536_866_816).contains(&blocksize) {
            return Err(field("blocksize", 8, "1 to 536866816", blocksize.into()));
        }
        let mut header = Self {
            version,
            versionlz,
            flags,
            typesize,
            nbytes: nbytes.unsigned_abs(),
            blocksize: blocksize.unsigned_abs(),
            cbytes: cbytes.unsigned_abs(),
            filters: [0; MAX_FILTERS],
            udcodec: 0,
            codec_meta: 0,
            filters_meta: [0; MAX_FILTERS],
            blosc2_flags2: 0,
            blosc2_flags: 0,
        };
        if header.is_extended() {
            let Some(long) = raw.first_chunk::<EXTENDED_HEADER_LENGTH>() else {
                return Err(Error::Truncated {
                    what: "extended chunk header",
                    at: 0,
                    needed: EXTENDED_HEADER_LENGTH as u64,
                    got: raw.len() as u64,
                });
            };
            header.filters.copy_from_slice(&long[16..22]);
            header.udcodec = long[22];
            header.codec_meta = long[23];
            header.filters_meta.copy_from_slice(&long[24..30]);
            header.blosc2_flags2 = long[30];
            header.blosc2_flags = long[31];
            if version == 3 {
                // The alphas had five slots; the sixth is whatever followed them.
                header.filters[5] = 0;
                header.filters_meta[5] = 0;
            }
            if version < VERSION_STABLE {
                header.blosc2_flags2 = 0;
            }
        } else {
            if flags & FLAG_SHUFFLE != 0 {
                header.filters[5] = filters::SHUFFLE;
            } else if flags & FLAG_BITSHUFFLE != 0 {
                header.filters[5] = filters::BITSHUFFLE;
            }
            if flags & FLAG_DELTA != 0 {
                if version <= 2 {
                    return Err(field("flags", 2, "bit 3 clear in a chunk of Blosc1", flags.into()));
                }
                header.filters[4] = filters::DELTA;
            }
            header.udcodec = match header.format_number() {
                3 => 4,
                4 => 5,
                other => other,
            };
        }
        let length = header.len();
        if cbytes < 0 || (header.cbytes as usize) < length {
            return Err(field("cbytes", 12, format!("at least the header's {length} bytes"), cbytes.into()));
        }
        if u64::from(header.cbytes) > available && header.blosc2_flags & FLAG2_LAZY == 0 {
            return Err(Error::Truncated { what: "chunk", at: 0, needed: header.cbytes.into(), got: available });
        }
        header.check_body()?;
        Ok(header)
    }

    /// The rules that tie special values, uncompressed storage and variable-length blocks to the sizes.
    fn check_body(&self) -> Result<()> {
        if self.blosc2_flags2 & !FLAG3_VLBLOCKS != 0 {
            return Err(field("blosc2_flags2", 30, "bits 1 to 7 clear", self.blosc2_flags2.into()));
        }
        let special_id = (self.blosc2_flags >> 4) & 7;
        if self.vlblocks() {
            if special_id != 0 {
                return Err(field(
                    "blosc2_flags",
                    31,
                    "no special value beside variable-length blocks",
                    special_id.into(),
                ));
            }
            if self.flags & FLAG_MEMCPYED != 0 {
                return Err(field("flags", 2, "not memcpyed beside variable-length blocks", self.flags.into()));
            }
            return Ok(());
        }
        let nbytes = self.nbytes as usize;
        let width = self.cbytes as usize - self.len();
        match (special_id, Special::from_id(special_id)) {
            (0, _) | (_, Some(Special::Zero | Special::Uninit)) => {}
            (_, None) => return Err(field("special value", 31, "0 to 4", special_id.into())),
            (_, Some(Special::Nan)) => {
                if self.typesize != 4 && self.typesize != 8 {
                    return Err(field("typesize", 3, "4 or 8 in a chunk of NaN", self.typesize.into()));
                }
                if !nbytes.is_multiple_of(self.typesize.into()) {
                    return Err(field(
                        "nbytes",
                        4,
                        format!("a multiple of the typesize {}", self.typesize),
                        self.nbytes.into(),
                    ));
                }
            }
            (_, Some(Special::Value)) => {
                if width == 0 || width > MAX_TYPESIZE || width > nbytes || !nbytes.is_multiple_of(width) {
                    return Err(field(
                        "cbytes",
                        12,
                        format!("32 and an item whose size divides {nbytes}"),
                        self.cbytes.into(),
                    ));
                }
            }
        }
        if special_id == 0 && self.flags & FLAG_MEMCPYED != 0 && width != nbytes {
            return Err(field(
                "cbytes",
                12,
                format!("{} (a memcpyed chunk of {nbytes} bytes)", nbytes + self.len()),
                self.cbytes.into(),
            ));
        }
        Ok(())
    }

    /// Whether the header has 32 bytes rather than 16.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.flags & FLAG_EXTENDED == FLAG_EXTENDED
    }

    /// Bytes of the header.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub fn len(&self) -> usize {
        if self.is_extended() { EXTENDED_HEADER_LENGTH } else { MIN_HEADER_LENGTH }
    }

    /// What follows the header.
    #[must_use]
    pub fn body(&self) -> Body {
        if let Some(special) = Special::from_id((self.blosc2_flags >> 4) & 7) {
            Body::Special(special)
        } else if self.flags & FLAG_MEMCPYED != 0 {
            Body::Memcpyed
        } else if self.nbytes == 0 {
            Body::Empty
        } else if self.vlblocks() {
            Body::VlBlocks
        } else {
            Body::Blocks
        }
    }

    /// Whether blocks have lengths of their own.
    #[must_use]
    pub fn vlblocks(&self) -> bool {
        self.blosc2_flags2 & FLAG3_VLBLOCKS != 0
    }

    /// Whether a dictionary follows the block table. The flag means nothing on a chunk without blocks.
    #[must_use]
    pub fn use_dict(&self) -> bool {
        self.blosc2_flags & FLAG2_USEDICT != 0 && matches!(self.body(), Body::Blocks | Body::VlBlocks)
    }

    /// Whether streams hold timing records, which no filter has touched.
    #[must_use]
    pub fn instrumented(&self) -> bool {
        self.blosc2_flags & FLAG2_INSTRUMENTED != 0
    }

    /// The three format bits.
    #[must_use]
    pub fn format_number(&self) -> u8 {
        self.flags >> 5
    }

    /// The codec format.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a format or registered codec that is not built in.
    pub fn format(&self) -> Result<CodecFormat> {
        let format = CodecFormat::from_flags(self.flags)?;
        format.require_built_in(self.udcodec)?;
        Ok(format)
    }

    /// How many blocks the chunk has, given the block size in use.
    #[must_use]
    pub fn nblocks(&self, blocksize: usize) -> usize {
        match self.body() {
            Body::VlBlocks => self.blocksize as usize,
            _ => (self.nbytes as usize).div_ceil(blocksize.max(1)),
        }
    }

    /// The bytes of an extended header; a short one is their first 16.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; EXTENDED_HEADER_LENGTH] {
        let mut raw = [0; EXTENDED_HEADER_LENGTH];
        raw[..4].copy_from_slice(&[self.version, self.versionlz, self.flags, self.typesize]);
        raw[4..8].copy_from_slice(&self.nbytes.to_le_bytes());
        raw[8..12].copy_from_slice(&self.blocksize.to_le_bytes());
        raw[12..16].copy_from_slice(&self.cbytes.to_le_bytes());
        raw[16..22].copy_from_slice(&self.filters);
        raw[22] = self.udcodec;
        raw[23] = self.codec_meta;
        raw[24..30].copy_from_slice(&self.filters_meta);
        raw[30] = self.blosc2_flags2;
        raw[31] = self.blosc2_flags;
        raw
    }
}
