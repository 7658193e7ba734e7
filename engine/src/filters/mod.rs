//! The filters: what happens to a block before the codec sees it, and is undone after.
//!
//! A chunk names six slots, each an id and one parameter byte. Writing runs slots 0 to 5, reading 5 to 0;
//! every filter maps a whole block to a block of the same length, whatever that length is.
//!
//! ```text
//! uncompressed block -> slot 0 -> slot 1 -> ... -> slot 5 -> streams -> codec
//! ```
//!
//! [`Pipeline`] checks the slots once and then runs them. Each filter is a folder: `mod.rs` says what the filter
//! does and picks a version by [`Isa`](crate::cpu::Isa), `scalar.rs` is complete by itself and the oracle of the
//! others. Those that go by the shape of an array's blocks are in `cells`.
//!
//! Source: docs/format/filters.md; docs/format/chunk.md, section "Validation".

mod bitshuffle;
mod bytedelta;
mod cells;
mod delta;
mod pipeline;
mod shuffle;
#[cfg(test)]
mod testing;
mod truncate;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use bitshuffle::BitshuffleRule;
pub(crate) use pipeline::Joint;
pub use pipeline::{Pipeline, Scratch};
pub use shuffle::{MAX_PLANES, unshuffle_planes};

use crate::error::Result;

/// An empty slot.
pub const NOFILTER: u8 = 0;
/// Byte j of every item, for each j. Meta: the width of an item in bytes, 0 for the typesize.
pub const SHUFFLE: u8 = 1;
/// Bit j of every item, for each j.
pub const BITSHUFFLE: u8 = 2;
/// XOR with what came before.
pub const DELTA: u8 = 3;
/// Clear low bits of floating-point items. Meta: bits of the mantissa to keep, or minus the bits to clear.
pub const TRUNC_PREC: u8 = 4;
/// Reorder an array's block into cells. Meta: the side of a cell in items.
pub const NDCELL: u8 = 32;
/// Replace the cells of an array's block by their means. Meta: the side of a cell in items.
pub const NDMEAN: u8 = 33;
/// The first, faulty version of [`BYTEDELTA`]; reading only.
pub const BYTEDELTA_OLD: u8 = 34;
/// Differences of neighbouring bytes within each byte plane. Meta: the number of planes, 0 for the item's size.
pub const BYTEDELTA: u8 = 35;
/// Clear low bits of integer items. Meta: bits to keep, or minus the bits to clear.
pub const INT_TRUNC: u8 = 36;
/// The first id that is left to users.
pub const FIRST_USER: u8 = 160;

/// The registered name of a filter id, `"user"` for the users' own and `"unknown"` for the rest.
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
        BYTEDELTA_OLD => "bytedelta_old",
        BYTEDELTA => "bytedelta",
        INT_TRUNC => "int_trunc",
        FIRST_USER..=u8::MAX => "user",
        _ => "unknown",
    }
}

/// Filters that the caller brings; of an id that is built in too, the caller's is taken.
///
/// A filter maps a block to one of the same length. `dst` comes zeroed, `meta` is the slot's parameter byte.
pub trait UserFilter: Sync {
    /// Whether there is a filter of this id.
    fn has(&self, id: u8) -> bool;
    /// Filter `src` into `dst`, when writing.
    ///
    /// # Errors
    ///
    /// [`Error::User`](crate::Error::User) when the filter fails.
    fn forward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()>;
    /// Undo [`forward`](Self::forward), when reading.
    ///
    /// # Errors
    ///
    /// [`Error::User`](crate::Error::User) when the filter fails.
    fn backward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()>;
}

/// Where steps of `step` begin that together cover `0..length`: the last one is moved back to end at the end.
///
/// Nothing when `length` is below `step`. Handling some items twice is cheaper than a version for the rest.
#[inline]
fn starts(length: usize, step: usize) -> impl Iterator<Item = usize> {
    let last = length.checked_sub(step);
    let next = move |&at: &usize| last.filter(|&last| at < last).map(|last| (at + step).min(last));
    std::iter::successors(last.map(|_| 0), next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cpu::Isa;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn every_version_agrees_with_the_plain_one(
            width in prop_oneof![1_usize..=48, 1_usize..=255],
            nitems in 0_usize..1400,
            rest in 0_usize..255,
            at in 0_usize..64,
        ) {
            let length = nitems * width + rest % width;
            let src = &testing::noise(at + length)[at..];
            let rule = BitshuffleRule::Current;
            let run = |isa, backward, bits| {
                let mut dst = vec![0xA5; at + length];
                let out = &mut dst[at..];
                match (backward, bits) {
                    (false, false) => shuffle::shuffle(isa, width, src, out),
                    (true, false) => shuffle::unshuffle(isa, width, src, out),
                    (false, true) => bitshuffle::bitshuffle(isa, rule, width, src, out),
                    (true, true) => bitshuffle::bitunshuffle(isa, rule, width, src, out),
                }
                dst
            };
            for isa in Isa::available() {
                for (backward, bits) in [(false, false), (true, false), (false, true), (true, true)] {
                    prop_assert!(
                        run(isa, backward, bits) == run(Isa::scalar(), backward, bits),
                        "{} backward {backward} bits {bits}", isa.name()
                    );
                }
            }
        }
    }

    #[test]
    fn every_id_has_its_name() {
        assert_eq!(name_of_id(0), "nofilter");
        assert_eq!(name_of_id(5), "unknown");
        assert_eq!(name_of_id(32), "ndcell");
        assert_eq!(name_of_id(36), "int_trunc");
        assert_eq!(name_of_id(159), "unknown");
        assert_eq!(name_of_id(160), "user");
        assert_eq!(name_of_id(255), "user");
    }

    #[test]
    fn steps_cover_everything_and_end_at_the_end() {
        assert_eq!(starts(31, 32).count(), 0);
        assert_eq!(starts(32, 32).collect::<Vec<_>>(), [0]);
        assert_eq!(starts(64, 32).collect::<Vec<_>>(), [0, 32]);
        assert_eq!(starts(65, 32).collect::<Vec<_>>(), [0, 32, 33]);
    }
}
