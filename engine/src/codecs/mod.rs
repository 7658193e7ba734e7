//! The codecs: streams of bytes to shorter streams of bytes, and back.
//!
//! Two number spaces are joined here. The *API id* names an encoder (`Codec`, byte `udcodec` of a
//! chunk); the *format* names what a decoder has to understand (`CodecFormat`, bits 5-7 of a
//! chunk's `flags`). LZ4 and LZ4HC are two codecs of one format.
//!
//! ```text
//! codec    id    format   implementation
//! BloscLZ   0       0     this crate
//! LZ4       1       1     liblz4
//! LZ4HC     2       1     liblz4
//! Snappy    3       2     not built in
//! Zlib      4       3     libdeflate
//! Zstd      5       4     libzstd
//! Lizard    6       5     not built in
//! NDLZ     32       6     this crate; for blocks of two-dimensional arrays
//! others   33..     6     not built in, or the caller's
//! ```
//!
//! An [`Encoder`] and a [`Decoder`] belong to one worker and keep their contexts from stream to
//! stream; what they produce never depends on what they did before. Dictionaries are prepared
//! once and shared ([`PreparedDict`], [`DecodeDict`]).
//!
//! Raw streams, runs of one byte and the choice between them are the chunk's business.
//!
//! Source: docs/format/codecs.md.

mod blosclz;
mod decoder;
mod dict;
mod encoder;
mod lz4;
pub(crate) mod ndlz;
mod sequences;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

pub use decoder::Decoder;
pub use dict::{DecodeDict, PreparedDict, train_dictionary};
pub use encoder::Encoder;

use std::ops::RangeInclusive;

use crate::{Error, Result};

#[cfg(feature = "zstd")]
pub(crate) use zstd::prepare;

/// What a decoder says of a stream: fine, or what is wrong with it.
pub type Verdict<T = ()> = std::result::Result<T, &'static str>;

/// An encoder by its API id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// The format's own LZ77, made for speed.
    BloscLz = 0,
    /// LZ4, fast.
    Lz4 = 1,
    /// LZ4 with a thorough search; decodes as [`Codec::Lz4`].
    Lz4Hc = 2,
    /// Deflate in a zlib wrapper.
    Zlib = 4,
    /// Zstandard.
    Zstd = 5,
}

impl Codec {
    /// Every codec that is built in, by id.
    pub const ALL: [Self; 5] = [Self::BloscLz, Self::Lz4, Self::Lz4Hc, Self::Zlib, Self::Zstd];

    /// The codec with this API id.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when no codec with that id is built in.
    pub fn from_id(id: u8) -> Result<Self> {
        match id {
            0 => Ok(Self::BloscLz),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Lz4Hc),
            4 if cfg!(feature = "zlib") => Ok(Self::Zlib),
            5 if cfg!(feature = "zstd") => Ok(Self::Zstd),
            _ => Err(unsupported(id)),
        }
    }

    /// The API id.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The registered name, as [`name_of_id`] has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        name_of_id(self.id())
    }

    /// The format that this codec writes: the one way between the two number spaces.
    #[must_use]
    pub const fn format(self) -> CodecFormat {
        match self {
            Self::BloscLz => CodecFormat::BloscLz,
            Self::Lz4 | Self::Lz4Hc => CodecFormat::Lz4,
            Self::Zlib => CodecFormat::Zlib,
            Self::Zstd => CodecFormat::Zstd,
        }
    }

    /// Whether the codec can work with a dictionary.
    #[must_use]
    pub const fn takes_dictionary(self) -> bool {
        matches!(self, Self::Lz4 | Self::Lz4Hc | Self::Zstd)
    }
}

/// The id of NDLZ: it is no [`Codec`], for it needs to know of blocks what streams do not tell.
pub const NDLZ: u8 = 32;

/// The ids of ZFP, which a caller may bring: fixed accuracy, precision and rate. It depends on the shape of blocks, too.
pub const ZFP: RangeInclusive<u8> = 33..=35;

/// What a decoder must understand: bits 5-7 of a chunk's `flags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CodecFormat {
    /// BloscLZ streams.
    BloscLz = 0,
    /// LZ4 blocks, without frame or size.
    Lz4 = 1,
    /// Snappy, of Blosc1 only; not built in.
    Snappy = 2,
    /// Deflate in a zlib wrapper.
    Zlib = 3,
    /// Zstandard frames.
    Zstd = 4,
    /// A registered or user codec, named by the chunk's `udcodec`.
    Registered = 6,
}

impl CodecFormat {
    /// The format in bits 5-7 of a chunk's `flags`.
    ///
    /// Known formats are returned whether they are built in or not.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for 5, Lizard of early betas, and with the format number for 7, which
    /// nobody defined.
    pub fn from_flags(flags: u8) -> Result<Self> {
        match flags >> 5 {
            0 => Ok(Self::BloscLz),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Snappy),
            3 => Ok(Self::Zlib),
            4 => Ok(Self::Zstd),
            5 => Err(unsupported(6)),
            6 => Ok(Self::Registered),
            number => Err(Error::Unsupported { what: "codec", id: number, name: "unknown" }),
        }
    }

    /// The format in place in a chunk's `flags`, the other bits zero.
    #[must_use]
    pub const fn flag_bits(self) -> u8 {
        (self as u8) << 5
    }

    /// The name, for messages; a registered codec's own name is that of its `udcodec`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BloscLz => "blosclz",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
            Self::Registered => "registered",
        }
    }

    /// Checks that streams of this format can be decoded here.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for Snappy and for registered codecs but [`NDLZ`]; `udcodec` is the chunk's byte
    /// of that name and is looked at for registered codecs only.
    pub fn require_built_in(self, udcodec: u8) -> Result<()> {
        match self {
            Self::BloscLz | Self::Lz4 => Ok(()),
            Self::Zlib if cfg!(feature = "zlib") => Ok(()),
            Self::Zstd if cfg!(feature = "zstd") => Ok(()),
            Self::Zlib => Err(unsupported(4)),
            Self::Zstd => Err(unsupported(5)),
            Self::Registered if udcodec == NDLZ => Ok(()),
            Self::Snappy => Err(unsupported(3)),
            // A registered format never means one of the built-in codecs.
            Self::Registered if udcodec < 32 => Err(Error::Unsupported { what: "codec", id: udcodec, name: "unknown" }),
            Self::Registered => Err(unsupported(udcodec)),
        }
    }
}

/// The error for a codec id that is not built in.
fn unsupported(id: u8) -> Error {
    Error::Unsupported { what: "codec", id, name: name_of_id(id) }
}

/// The registered name of a codec id, "user" in the users' range, else "unknown".
///
/// Source: docs/format/codecs.md, section "Registered codecs".
#[must_use]
pub const fn name_of_id(id: u8) -> &'static str {
    match id {
        0 => "blosclz",
        1 => "lz4",
        2 => "lz4hc",
        3 => "snappy",
        4 => "zlib",
        5 => "zstd",
        6 => "lizard",
        32 => "ndlz",
        33 => "zfp accuracy",
        34 => "zfp precision",
        35 => "zfp rate",
        36 => "openhtj2k",
        37 => "grok",
        38 => "openzl",
        39 => "j2k",
        40 => "htj2k",
        160.. => "user",
        _ => "unknown",
    }
}

/// Name and version of the library behind a codec, in the spelling that Blosc2 users know.
///
/// BloscLZ is this crate's own; its version is that of the encoder whose output it matches. Zlib
/// is served by libdeflate, and says so.
#[must_use]
pub fn library_version(codec: Codec) -> (&'static str, String) {
    match codec {
        Codec::BloscLz => ("BloscLZ", "2.5.3".to_owned()),
        Codec::Lz4 | Codec::Lz4Hc => ("LZ4", lz4::version()),
        #[cfg(feature = "zlib")]
        Codec::Zlib => ("Zlib", format!("libdeflate {}", zlib::LIBDEFLATE_VERSION)),
        #[cfg(not(feature = "zlib"))]
        Codec::Zlib => ("Zlib", "not built in".to_owned()),
        #[cfg(not(feature = "zstd"))]
        Codec::Zstd => ("Zstd", "not built in".to_owned()),
        #[cfg(feature = "zstd")]
        Codec::Zstd => ("Zstd", zstd_safe::version_string().to_owned()),
    }
}

#[cfg(test)]
mod tests;
