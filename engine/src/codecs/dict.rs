//! Dictionaries: made from samples, prepared once, shared by all workers.
//!
//! For Zstd the bytes of a dictionary are a trained one; for LZ4 and LZ4HC they are history that
//! seems to lie just before each stream. Where they are in a chunk is the chunk's business.
//!
//! Source: docs/format/chunk.md, section "Dictionaries".

use std::sync::Arc;
#[cfg(feature = "zstd")]
use std::sync::OnceLock;

#[cfg(feature = "zstd")]
use zstd_safe::{CDict, DDict};

#[cfg(feature = "zstd")]
use super::Verdict;
use super::{Codec, lz4};
use crate::{Error, Result};

/// Level at which Zstd works whenever there is a dictionary.
#[cfg(feature = "zstd")]
const ZSTD_DICT_LEVEL: i32 = 1;

/// A dictionary prepared for encoding with one codec at one level; cheap to clone and to share.
#[derive(Debug, Clone)]
pub struct PreparedDict {
    codec: Codec,
    clevel: u8,
    shared: Shared,
}

/// What the workers' encoders hold of a dictionary.
#[derive(Clone)]
pub(super) enum Shared {
    Lz4(Arc<lz4::FastDict>),
    Lz4Hc(Arc<lz4::HcDict>),
    #[cfg(feature = "zstd")]
    Zstd(Arc<CDict<'static>>),
}

impl Shared {
    pub(super) fn lz4(&self) -> Option<Arc<lz4::FastDict>> {
        match self {
            Self::Lz4(dict) => Some(Arc::clone(dict)),
            Self::Lz4Hc(_) => None,
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => None,
        }
    }

    pub(super) fn lz4hc(&self) -> Option<Arc<lz4::HcDict>> {
        match self {
            Self::Lz4Hc(dict) => Some(Arc::clone(dict)),
            Self::Lz4(_) => None,
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => None,
        }
    }

    #[cfg(feature = "zstd")]
    pub(super) fn zstd(&self) -> Option<Arc<CDict<'static>>> {
        match self {
            Self::Zstd(dict) => Some(Arc::clone(dict)),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Lz4(_) => "Lz4",
            Self::Lz4Hc(_) => "Lz4Hc",
            #[cfg(feature = "zstd")]
            Self::Zstd(_) => "Zstd",
        })
    }
}

impl PreparedDict {
    /// Prepares the bytes of a dictionary, which are copied.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a codec that takes no dictionary, for an empty dictionary, and for
    /// bytes that start like a trained Zstd dictionary but are none; [`Error::OutOfMemory`].
    pub fn new(codec: Codec, clevel: u8, bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::Argument { name: "dictionary", expected: "at least one byte".into(), found: 0 });
        }
        let shared = match codec {
            Codec::Lz4 => Shared::Lz4(Arc::new(lz4::FastDict::new(bytes)?)),
            Codec::Lz4Hc => Shared::Lz4Hc(Arc::new(lz4::HcDict::new(bytes, clevel)?)),
            #[cfg(not(feature = "zstd"))]
            Codec::Zstd => return Err(super::unsupported(codec.id())),
            #[cfg(feature = "zstd")]
            Codec::Zstd => {
                let dict = CDict::try_create(bytes, ZSTD_DICT_LEVEL).ok_or(Error::Argument {
                    name: "dictionary",
                    expected: "a dictionary that zstd accepts".into(),
                    found: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
                })?;
                Shared::Zstd(Arc::new(dict))
            }
            Codec::BloscLz | Codec::Zlib => return Err(takes_none(codec)),
        };
        Ok(Self { codec, clevel, shared })
    }

    /// Checks that an encoder of this codec and level can use the dictionary.
    pub(super) fn check(&self, codec: Codec, clevel: u8) -> Result<()> {
        if !codec.takes_dictionary() {
            return Err(takes_none(codec));
        }
        if codec != self.codec {
            return Err(Error::Argument {
                name: "codec",
                expected: format!("{} as the dictionary's", self.codec.id()).into(),
                found: codec.id().into(),
            });
        }
        // Only LZ4HC lays its dictionary out by level.
        if codec == Codec::Lz4Hc && clevel != self.clevel {
            return Err(Error::Argument {
                name: "clevel",
                expected: format!("{} as the dictionary's", self.clevel).into(),
                found: clevel.into(),
            });
        }
        Ok(())
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }
}

/// The error for a codec without dictionaries.
fn takes_none(codec: Codec) -> Error {
    Error::Argument { name: "codec", expected: "1, 2 or 5 with a dictionary".into(), found: codec.id().into() }
}

/// A dictionary for decoding. The bytes serve LZ4; the Zstd form is made on first use.
pub struct DecodeDict {
    bytes: Box<[u8]>,
    #[cfg(feature = "zstd")]
    zstd: OnceLock<Option<DDict<'static>>>,
}

impl DecodeDict {
    /// Takes a copy of the dictionary's bytes as they are in a chunk.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.into(),
            #[cfg(feature = "zstd")]
            zstd: OnceLock::new(),
        }
    }

    /// The bytes, as history in front of each stream.
    pub(super) fn history(&self) -> &[u8] {
        &self.bytes
    }

    /// The Zstd form.
    #[cfg(feature = "zstd")]
    pub(super) fn zstd(&self) -> Verdict<&DDict<'static>> {
        self.zstd.get_or_init(|| DDict::try_create(&self.bytes)).as_ref().ok_or("the dictionary is damaged")
    }
}

impl std::fmt::Debug for DecodeDict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecodeDict").field("nbytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Makes a dictionary of at most `max` bytes from samples that lie end to end.
///
/// Zstd is trained on the samples; LZ4 and LZ4HC take their first bytes. `None` when the codec
/// takes no dictionary, when the sizes do not fit the samples, or when training finds nothing
/// worth keeping.
#[must_use]
pub fn train_dictionary(codec: Codec, samples: &[u8], sample_sizes: &[usize], max: usize) -> Option<Vec<u8>> {
    let total = sample_sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size))?;
    let samples = samples.get(..total)?;
    if samples.is_empty() || max == 0 {
        return None;
    }
    match codec {
        Codec::Lz4 | Codec::Lz4Hc => Some(samples[..total.min(max)].to_vec()),
        #[cfg(not(feature = "zstd"))]
        Codec::Zstd => None,
        #[cfg(feature = "zstd")]
        Codec::Zstd => {
            let mut dict = Vec::with_capacity(max);
            zstd_safe::train_from_buffer(&mut dict, samples, sample_sizes).ok()?;
            (!dict.is_empty()).then_some(dict)
        }
        Codec::BloscLz | Codec::Zlib => None,
    }
}
