//! The filter pipeline: six slots, run in order before the codec and backwards after it.
//!
//! ```text
//! block -> slot 0 -> slot 1 -> ... -> slot 5 -> streams -> codec
//! ```
//!
//! A filter maps a whole block to one of the same length. [`Pipeline`] is a checked list of those that do
//! something; it never writes to its input. Which instructions run is decided by the [`Isa`] it is given.
//!
//! Source: docs/format/filters.md.

mod bitshuffle;
mod bytedelta;
mod delta;
mod shuffle;
mod truncate;

use crate::cpu::Isa;
use crate::error::{Error, Result};

pub use bitshuffle::BitshuffleRule;

/// An empty slot.
pub const NOFILTER: u8 = 0;
/// Bytes of items gathered by their place; the parameter overrides the width.
pub const SHUFFLE: u8 = 1;
/// Bits of items gathered by their place.
pub const BITSHUFFLE: u8 = 2;
/// XOR with the word before, or with block 0.
pub const DELTA: u8 = 3;
/// Fewer bits of precision in floating point numbers.
pub const TRUNC_PREC: u8 = 4;
/// Cells of an array made contiguous.
pub const NDCELL: u8 = 32;
/// Cells of an array replaced by their mean.
pub const NDMEAN: u8 = 33;
/// The first, faulty version of [`BYTEDELTA`].
pub const BYTEDELTA_OLD: u8 = 34;
/// Differences of bytes within planes; the parameter is the number of planes.
pub const BYTEDELTA: u8 = 35;
/// Fewer bits in integers.
pub const INT_TRUNC: u8 = 36;
/// Users' filters have ids from here to 255.
pub const FIRST_USER: u8 = 160;

/// The registered name of a filter.
#[must_use]
pub const fn name_of_id(id: u8) -> &'static str {
    match id {
        NOFILTER => "nofilter",
        SHUFFLE => "shuffle",
        BITSHUFFLE => "bitshuffle",
        DELTA => "delta",
        TRUNC_PREC => "trunc_prec",
        NDCELL => "ndcell",
        NDMEAN => "ndmean",
        BYTEDELTA_OLD => "bytedelta, first version",
        BYTEDELTA => "bytedelta",
        INT_TRUNC => "int_trunc",
        FIRST_USER.. => "user",
        _ => "unknown",
    }
}

/// Filters that the caller brings.
pub trait UserFilter: Sync {
    /// Whether there is a filter of this id.
    fn has(&self, id: u8) -> bool;
    /// Filter `src` into `dst`, of the same length.
    ///
    /// # Errors
    ///
    /// [`Error::User`] when the filter fails.
    fn forward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()>;
    /// Undo [`UserFilter::forward`].
    ///
    /// # Errors
    ///
    /// [`Error::User`] when the filter fails.
    fn backward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()>;
}

/// One filter that does something, with its parameters resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Shuffle { width: usize },
    Bitshuffle { typesize: usize, rule: BitshuffleRule },
    Delta { word: usize },
    Truncate { word: usize, mask: u64 },
    Bytedelta { nplanes: usize },
    BytedeltaOld { nplanes: usize },
    User { id: u8, meta: u8 },
}

/// Buffers that a pipeline works in, kept by each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    here: Vec<u8>,
    there: Vec<u8>,
    temp: Vec<u8>,
}

fn room(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8]> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| Error::OutOfMemory { needed: len as u64 })?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}

impl Scratch {
    /// Let go of buffers larger than `most` bytes.
    pub(crate) fn trim(&mut self, most: usize) {
        for buffer in [&mut self.here, &mut self.there, &mut self.temp] {
            if buffer.capacity() > most {
                *buffer = Vec::new();
            }
        }
    }
}

/// A checked pipeline.
#[derive(Debug)]
pub struct Pipeline {
    steps: Vec<Step>,
}

fn bad_slot(name: &'static str, expected: String, found: u8) -> Error {
    Error::Argument { name, expected: expected.into(), found: found.into() }
}

impl Pipeline {
    /// Check the pipeline of a chunk that is to be read.
    ///
    /// `typesize` is the chunk's own; `itemsize` the container's item size, where known; both in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] naming a filter that is not available.
    pub fn for_reading(
        ids: [u8; 6],
        metas: [u8; 6],
        typesize: usize,
        itemsize: Option<usize>,
        rule: BitshuffleRule,
        user: Option<&dyn UserFilter>,
    ) -> Result<Self> {
        let typesize = typesize.max(1);
        let mut steps = Vec::new();
        for (id, meta) in ids.into_iter().zip(metas) {
            let nplanes = if meta > 0 { meta.into() } else { itemsize.unwrap_or(typesize).max(1) };
            match id {
                _ if user.is_some_and(|user| user.has(id)) => steps.push(Step::User { id, meta }),
                // Cleared bits stay cleared.
                NOFILTER | TRUNC_PREC | INT_TRUNC => {}
                SHUFFLE => steps.extend(shuffle_step(meta, typesize)),
                BITSHUFFLE => steps.push(Step::Bitshuffle { typesize, rule }),
                DELTA => steps.push(Step::Delta { word: delta::word_of(typesize) }),
                BYTEDELTA => steps.push(Step::Bytedelta { nplanes }),
                BYTEDELTA_OLD => steps.push(Step::BytedeltaOld { nplanes }),
                _ => return Err(Error::Unsupported { what: "filter", id, name: name_of_id(id) }),
            }
        }
        Ok(Self { steps })
    }

    /// Check a pipeline to write with.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] naming a filter that is not available; [`Error::Argument`] for a parameter out of
    /// range, or for a DELTA that is not the first filter: readers undo it with the plain block 0.
    pub fn for_writing(
        ids: [u8; 6],
        metas: [u8; 6],
        typesize: usize,
        itemsize: Option<usize>,
        rule: BitshuffleRule,
        user: Option<&dyn UserFilter>,
    ) -> Result<Self> {
        let typesize = typesize.max(1);
        let mut steps = Vec::new();
        let mut nfilters = 0;
        for (id, meta) in ids.into_iter().zip(metas) {
            let nplanes = if meta > 0 { meta.into() } else { itemsize.unwrap_or(typesize).max(1) };
            match id {
                NOFILTER => continue,
                _ if user.is_some_and(|user| user.has(id)) => steps.push(Step::User { id, meta }),
                SHUFFLE => steps.extend(shuffle_step(meta, typesize)),
                BITSHUFFLE => steps.push(Step::Bitshuffle { typesize, rule }),
                DELTA if nfilters > 0 => {
                    return Err(bad_slot("filters", "DELTA only as the first filter".into(), DELTA));
                }
                DELTA => steps.push(Step::Delta { word: delta::word_of(typesize) }),
                TRUNC_PREC => steps.push(truncation(meta, typesize, float_bits(typesize), "4 or 8 for TRUNC_PREC")?),
                INT_TRUNC => steps.push(truncation(meta, typesize, int_bits(typesize), "1, 2, 4 or 8 for INT_TRUNC")?),
                BYTEDELTA => steps.push(Step::Bytedelta { nplanes }),
                BYTEDELTA_OLD => {
                    return Err(bad_slot("filters", "BYTEDELTA by its id 35 (34 is read only)".into(), id));
                }
                _ => return Err(Error::Unsupported { what: "filter", id, name: name_of_id(id) }),
            }
            nfilters += 1;
        }
        Ok(Self { steps })
    }

    /// Whether blocks other than the first need block 0.
    #[must_use]
    pub fn needs_reference(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Delta { .. }))
    }

    /// Whether undoing it changes nothing.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.steps.is_empty()
    }

    /// Filter `block`. `reference` is block 0 as a reader decodes it, for other blocks of a pipeline that
    /// [needs it](Self::needs_reference).
    ///
    /// # Errors
    ///
    /// What a filter of the user says, and [`Error::OutOfMemory`].
    pub fn forward<'a>(
        &self,
        isa: Isa,
        block: &'a [u8],
        reference: Option<&[u8]>,
        scratch: &'a mut Scratch,
        user: Option<&dyn UserFilter>,
    ) -> Result<&'a [u8]> {
        if self.steps.is_empty() {
            return Ok(block);
        }
        let Scratch { here, there, temp } = scratch;
        for (n, step) in self.steps.iter().enumerate() {
            let src = if n == 0 { block } else { &here[..block.len()] };
            let dst = room(there, block.len())?;
            match *step {
                Step::Shuffle { width } => shuffle::shuffle(isa, width, src, dst),
                Step::Bitshuffle { typesize, rule } => {
                    bitshuffle::bitshuffle(isa, rule, typesize, src, dst, room(temp, block.len())?);
                }
                Step::Delta { word } => match reference {
                    None => delta::encode_first(word, src, dst),
                    Some(block0) => delta::against(word, src, block0, dst),
                },
                Step::Truncate { word, mask } => truncate::truncate(word, mask, src, dst),
                Step::Bytedelta { nplanes } | Step::BytedeltaOld { nplanes } => bytedelta::encode(nplanes, src, dst),
                Step::User { id, meta } => match user {
                    Some(user) => user.forward(id, meta, src, dst)?,
                    None => return Err(Error::Unsupported { what: "filter", id, name: name_of_id(id) }),
                },
            }
            std::mem::swap(here, there);
        }
        Ok(&here[..block.len()])
    }

    /// Undo the pipeline: `stage` holds the filtered block, the plain one lands in `dst`, of the same length.
    ///
    /// # Errors
    ///
    /// What a filter of the user says, and [`Error::OutOfMemory`].
    pub fn backward(
        &self,
        isa: Isa,
        stage: &[u8],
        dst: &mut [u8],
        reference: Option<&[u8]>,
        scratch: &mut Scratch,
        user: Option<&dyn UserFilter>,
    ) -> Result<()> {
        if self.steps.is_empty() {
            dst.copy_from_slice(stage);
            return Ok(());
        }
        let Scratch { here, there, temp } = scratch;
        let len = stage.len();
        let last = self.steps.len() - 1;
        for (n, step) in self.steps.iter().rev().enumerate() {
            let src = if n == 0 { stage } else { &here[..len] };
            let out = if n == last { &mut *dst } else { room(there, len)? };
            match *step {
                Step::Shuffle { width } => shuffle::unshuffle(isa, width, src, out),
                Step::Bitshuffle { typesize, rule } => {
                    bitshuffle::bitunshuffle(isa, rule, typesize, src, out, room(temp, len)?);
                }
                Step::Delta { word } => match reference {
                    None => delta::decode_first(word, src, out),
                    Some(block0) => delta::against(word, src, block0, out),
                },
                Step::Truncate { .. } => out.copy_from_slice(src),
                Step::Bytedelta { nplanes } => bytedelta::decode(isa, nplanes, src, out),
                Step::BytedeltaOld { nplanes } => bytedelta::decode_old(isa, nplanes, src, out),
                Step::User { id, meta } => match user {
                    Some(user) => user.backward(id, meta, src, out)?,
                    None => return Err(Error::Unsupported { what: "filter", id, name: name_of_id(id) }),
                },
            }
            std::mem::swap(here, there);
        }
        Ok(())
    }
}

fn shuffle_step(meta: u8, typesize: usize) -> Option<Step> {
    let width = if meta > 0 { meta.into() } else { typesize };
    (width > 1).then_some(Step::Shuffle { width })
}

fn float_bits(typesize: usize) -> Option<u32> {
    match typesize {
        4 => Some(23),
        8 => Some(52),
        _ => None,
    }
}

fn int_bits(typesize: usize) -> Option<u32> {
    match typesize {
        1 => Some(8),
        2 => Some(16),
        4 => Some(32),
        8 => Some(64),
        _ => None,
    }
}

fn truncation(meta: u8, typesize: usize, bits: Option<u32>, expected: &'static str) -> Result<Step> {
    let Some(bits) = bits else {
        return Err(Error::Argument {
            name: "typesize",
            expected: expected.into(),
            found: i64::try_from(typesize).unwrap_or(i64::MAX),
        });
    };
    let Some(cleared) = truncate::bits_to_clear(meta, bits) else {
        return Err(Error::Argument {
            name: "filters_meta",
            expected: format!("1 to {bits} bits to keep or -1 to -{} bits to drop", bits - 1).into(),
            found: meta.cast_signed().into(),
        });
    };
    Ok(Step::Truncate { word: typesize, mask: truncate::mask(typesize, cleared) })
}

/// Bytes for tests: neither constant nor periodic.
#[cfg(test)]
pub(crate) fn sample(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_le_bytes()[7]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(ids: [u8; 6], metas: [u8; 6], typesize: usize) -> Pipeline {
        Pipeline::for_reading(ids, metas, typesize, None, BitshuffleRule::Current, None).unwrap()
    }

    proptest! {
        #[test]
        fn what_lossless_pipelines_do_is_undone(
            delta in any::<bool>(),
            filters in prop::collection::vec((prop::sample::select(vec![SHUFFLE, BITSHUFFLE, BYTEDELTA, NOFILTER]), 0u8..20), 5),
            typesize in 1usize..256,
            len in 0usize..3000,
            isa in prop::sample::select(Isa::available()),
        ) {
            let (mut ids, mut metas) = ([0; 6], [0; 6]);
            ids[0] = if delta { DELTA } else { NOFILTER };
            for (n, (id, meta)) in filters.into_iter().enumerate() {
                ids[n + 1] = id;
                metas[n + 1] = meta;
            }
            let block0 = sample(len + 7);
            let block: Vec<u8> = sample(len).iter().map(|byte| byte >> 3).collect();
            let writing = Pipeline::for_writing(ids, metas, typesize, None, BitshuffleRule::Current, None).unwrap();
            for reference in [None, Some(block0.as_slice())] {
                let (mut scratch, mut back) = (Scratch::default(), vec![0xAA; len]);
                let stage = writing.forward(isa, &block, reference, &mut scratch, None).unwrap().to_vec();
                let plain = writing.forward(Isa::scalar(), &block, reference, &mut scratch, None).unwrap();
                prop_assert_eq!(&stage, plain);
                reading(ids, metas, typesize).backward(isa, &stage, &mut back, reference, &mut scratch, None).unwrap();
                prop_assert_eq!(&back, &block);
            }
        }
    }

    #[test]
    fn filters_that_are_not_available_are_named() {
        for (id, name) in [(NDCELL, "ndcell"), (NDMEAN, "ndmean"), (5, "unknown"), (200, "user")] {
            let expected = Err(Error::Unsupported { what: "filter", id, name });
            let ids = [0, 0, 0, 0, id, 0];
            let read = Pipeline::for_reading(ids, [0; 6], 4, None, BitshuffleRule::Current, None);
            assert_eq!(read.map(drop), expected.clone());
            assert_eq!(Pipeline::for_writing(ids, [0; 6], 4, None, BitshuffleRule::Current, None).map(drop), expected);
        }
    }

    #[test]
    fn delta_is_written_as_the_first_filter_only() {
        let late = Pipeline::for_writing([SHUFFLE, DELTA, 0, 0, 0, 0], [0; 6], 4, None, BitshuffleRule::Current, None);
        assert!(matches!(late, Err(Error::Argument { name: "filters", .. })));
        assert!(
            Pipeline::for_writing([0, DELTA, SHUFFLE, 0, 0, 0], [0; 6], 4, None, BitshuffleRule::Current, None).is_ok()
        );
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (id, meta, typesize) in [(TRUNC_PREC, 0, 4), (TRUNC_PREC, 24, 4), (INT_TRUNC, 9, 1)] {
            let pipeline = Pipeline::for_writing(
                [id, 0, 0, 0, 0, 0],
                [meta, 0, 0, 0, 0, 0],
                typesize,
                None,
                BitshuffleRule::Current,
                None,
            );
            assert!(matches!(pipeline, Err(Error::Argument { name: "filters_meta", .. })), "{id} {meta}");
        }
        for (id, typesize) in [(TRUNC_PREC, 2), (INT_TRUNC, 3)] {
            let pipeline =
                Pipeline::for_writing([id, 0, 0, 0, 0, 0], [1; 6], typesize, None, BitshuffleRule::Current, None);
            assert!(matches!(pipeline, Err(Error::Argument { name: "typesize", .. })), "{id}");
        }
    }
}
