//! One worker's encoder.

use std::ops::{Range, RangeInclusive};

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

    /// Makes an encoder that tells in little time whether streams hold anything that a codec could make use of.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub fn probe() -> Result<Self> {
        Ok(Self { codec: Codec::Lz4, clevel: 1, kind: Kind::Lz4(lz4::FastEncoder::probe()?) })
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
            Kind::Never | Kind::BloscLz(_) | Kind::Lz4(_) => 1,
            Kind::Lz4Hc(encoder) => encoder.candidates(),
            #[cfg(feature = "zlib")]
            Kind::Zlib(encoder) => encoder.candidates(),
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.candidates(),
        }
    }

    /// Roughly the time that a search takes, to compare those of this codec and level with one another.
    #[must_use]
    pub fn cost(&self, candidate: usize) -> u16 {
        match &self.kind {
            Kind::Never | Kind::BloscLz(_) | Kind::Lz4(_) => 1,
            Kind::Lz4Hc(encoder) => encoder.cost(candidate),
            #[cfg(feature = "zlib")]
            Kind::Zlib(encoder) => encoder.cost(candidate),
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.cost(candidate),
        }
    }

    /// Whether the quickest search takes much less time than the level's own for a stream that is left with `length` of
    /// `full` bytes.
    #[must_use]
    pub fn has_quicker(&self, length: usize, full: usize) -> bool {
        match self.codec {
            // The first level of zlib is made for data that repeats itself: on all but noise it is the quicker one.
            Codec::Zlib if self.clevel == 1 => 16 * length > 15 * full,
            // Long repetitions are what zlib-rs is quick at, and libdeflate leaves more of them.
            Codec::Zlib if self.clevel > 1 => 8 * length > full,
            _ => self.candidates() > 1,
        }
    }

    /// The quickest search that is sure to find something where the level's own does.
    #[must_use]
    pub fn min_sample_level(&self) -> usize {
        // The first level of libdeflate knows no matches of three bytes.
        usize::from(self.codec == Codec::Zlib && self.clevel > 0)
    }

    /// Whether the quicker searches leave about the same.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.codec == Codec::Zlib
    }

    /// The search for a stream of `length` bytes in which little is repeated: the level's own, or one that comes to its size.
    #[must_use]
    #[cfg_attr(not(feature = "zstd"), expect(unused_variables, reason = "only zstd goes by it"))]
    pub fn substitute(&self, length: usize) -> usize {
        match &self.kind {
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.substitute(length),
            _ => self.candidates() - 1,
        }
    }

    /// The searches for streams of a MiB and more that differ so little that some places of one tell which will do. The
    /// last comes to the size of the level's own there, and is that if there are no such searches.
    #[must_use]
    pub fn long_candidates(&self) -> RangeInclusive<usize> {
        match &self.kind {
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.long_candidates(),
            _ => self.candidates() - 1..=self.candidates() - 1,
        }
    }

    /// Whether [`Encoder::encode_around`] is to be had.
    #[must_use]
    pub fn goes_around(&self) -> bool {
        self.codec == Codec::Zlib && !matches!(self.kind, Kind::Never)
    }

    /// Compresses a stream with the level's own search, but for parts that are noise and stored as they are in it.
    ///
    /// They are in order and do not overlap. The rest is as in [`Encoder::encode`].
    #[cfg_attr(not(feature = "zlib"), expect(unused_variables, reason = "only zlib goes by it"))]
    pub fn encode_around(&mut self, incompressible: &[Range<usize>], src: &[u8], dst: &mut [u8]) -> Option<usize> {
        match &mut self.kind {
            #[cfg(feature = "zlib")]
            Kind::Zlib(encoder) if !incompressible.is_empty() => encoder.encode_around(incompressible, src, dst),
            _ => self.encode(src, dst),
        }
    }

    /// Compresses the stream `src` into the start of `dst` with the level's own search, and returns the bytes written.
    ///
    /// `None` means that the codec declined or that the result is longer than `dst`; what `dst`
    /// holds then is of no use. Bytes of `dst` behind the result may be overwritten.
    pub fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.encode_at(self.candidates() - 1, src, dst)
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
            Kind::BloscLz(encoder) => encoder.encode(src, dst),
            Kind::Lz4(encoder) => encoder.encode(src, dst),
            Kind::Lz4Hc(encoder) => encoder.encode(candidate, src, dst),
            #[cfg(feature = "zlib")]
            Kind::Zlib(encoder) => encoder.encode(candidate, src, dst),
            #[cfg(feature = "zstd")]
            Kind::Zstd(encoder) => encoder.encode(candidate, src, dst),
        }
    }
}
