//! One worker's encoder.

use super::dict::Shared;
#[cfg(feature = "zlib")]
use super::zlib;
#[cfg(feature = "zstd")]
use super::zstd;
use super::{Codec, PreparedDict, blosclz, lz4};
use crate::{Error, Result};

/// One worker's encoder for one codec, level and dictionary.
///
/// Contexts are made once and used for every stream. The same input gives the same output
/// whatever was encoded before.
#[derive(Debug)]
pub struct Encoder {
    codec: Codec,
    clevel: u8,
    kind: Kind,
}

/// The context, by codec.
#[derive(Debug)]
enum Kind {
    /// Level 0: nothing is ever compressed.
    Never,
    BloscLz(blosclz::Encoder),
    Lz4(lz4::FastEncoder),
    Lz4Hc(lz4::HcEncoder),
    #[cfg(feature = "zlib")]
    Zlib(zlib::Encoder),
    #[cfg(feature = "zstd")]
    Zstd(zstd::Encoder),
}

impl Encoder {
    /// Makes an encoder for `clevel` 0..9, where 0 declines every stream.
    ///
    /// A dictionary must have been prepared for the same codec and level.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a level above 9, for a codec that takes no dictionary, and for a
    /// dictionary prepared for another codec or level; [`Error::OutOfMemory`].
    pub fn new(codec: Codec, clevel: u8, dict: Option<&PreparedDict>) -> Result<Self> {
        if clevel > 9 {
            return Err(Error::Argument { name: "clevel", expected: "0 to 9".into(), found: clevel.into() });
        }
        if let Some(dict) = dict {
            dict.check(codec, clevel)?;
        }
        let shared = dict.map(PreparedDict::shared);
        let kind = match codec {
            _ if clevel == 0 => Kind::Never,
            #[cfg(not(feature = "zlib"))]
            Codec::Zlib => return Err(super::unsupported(codec.id())),
            #[cfg(not(feature = "zstd"))]
            Codec::Zstd => return Err(super::unsupported(codec.id())),
            Codec::BloscLz => Kind::BloscLz(blosclz::Encoder::new(clevel)),
            Codec::Lz4 => {
                let dict = shared.and_then(Shared::lz4);
                Kind::Lz4(lz4::FastEncoder::new(clevel, dict)?)
            }
            Codec::Lz4Hc => {
                let dict = shared.and_then(Shared::lz4hc);
                Kind::Lz4Hc(lz4::HcEncoder::new(clevel, dict)?)
            }
            #[cfg(feature = "zlib")]
            Codec::Zlib => Kind::Zlib(zlib::Encoder::new(clevel)),
            #[cfg(feature = "zstd")]
            Codec::Zstd => {
                let dict = shared.and_then(Shared::zstd);
                #[cfg(feature = "zstd")]
                Kind::Zstd(zstd::Encoder::new(clevel, dict)?)
            }
        };
        Ok(Self { codec, clevel, kind })
    }

    /// The codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The level, 0..9.
    #[must_use]
    pub fn clevel(&self) -> u8 {
        self.clevel
    }

    /// How many searches there are for this codec and level: the first is the quickest, the last the level's own.
    #[must_use]
    pub fn candidates(&self) -> usize {
        match &self.kind {
            Kind::Never | Kind::Lz4(_) => 1,
            Kind::BloscLz(_) => blosclz::Encoder::CANDIDATES,
            Kind::Lz4Hc(encoder) => encoder.candidates(),
            #[cfg(feature = "zlib")]
            Kind::Zlib(encoder) => encoder.candidates(),
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.candidates(),
        }
    }

    /// Whether a search is of use for streams of so many bytes: not if it is the level's own search there.
    #[must_use]
    #[cfg_attr(not(feature = "zstd"), expect(unused_variables, reason = "only zstd has searches for short streams"))]
    pub fn is_useful(&self, candidate: usize, length: usize) -> bool {
        match &self.kind {
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.is_useful(candidate, length),
            _ => true,
        }
    }

    /// Compresses the stream `src` into the start of `dst` with the level's own search, and returns the bytes written.
    ///
    /// `None` means that the codec declined or that the result is longer than `dst`; what `dst`
    /// holds then is of no use. Bytes of `dst` behind the result may be overwritten.
    pub fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.encode_at(self.candidates() - 1, src, dst)
    }

    /// The bytes that BloscLZ in C-Blosc2 leaves of a stream; `scratch` is overwritten. The level's own search of the other
    /// codecs is that of C-Blosc2.
    pub fn baseline(&mut self, src: &[u8], scratch: &mut [u8]) -> Option<usize> {
        match &mut self.kind {
            Kind::BloscLz(encoder) => encoder.baseline(src, scratch),
            _ => None,
        }
    }

    /// The same with another of the searches.
    ///
    /// # Panics
    ///
    /// If there are not more than `candidate`.
    pub fn encode_at(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if src.is_empty() || dst.is_empty() {
            return None;
        }
        match &mut self.kind {
            Kind::Never => None,
            Kind::BloscLz(encoder) => encoder.encode(candidate, src, dst),
            Kind::Lz4(encoder) => encoder.encode(src, dst),
            Kind::Lz4Hc(encoder) => encoder.encode(candidate, src, dst),
            #[cfg(feature = "zlib")]
            Kind::Zlib(encoder) => encoder.encode(candidate, src, dst),
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.encode(candidate, src, dst),
        }
    }
}
