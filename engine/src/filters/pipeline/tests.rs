//! What a pipeline promises.

use proptest::prelude::*;

use super::*;
use crate::filters::FIRST_USER;
use crate::filters::testing::{noise, on_every_isa};

/// A user's filters: `FIRST_USER` adds the meta to every byte, the next one writes nothing, `NDCELL` reverses.
struct Own;

impl UserFilter for Own {
    fn has(&self, id: u8) -> bool {
        [NDCELL, FIRST_USER, FIRST_USER + 1].contains(&id)
    }

    fn forward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()> {
        for (n, byte) in src.iter().enumerate() {
            match id {
                FIRST_USER => dst[n] = byte.wrapping_add(meta),
                NDCELL => dst[src.len() - 1 - n] = *byte,
                _ => {}
            }
        }
        Ok(())
    }

    fn backward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()> {
        if meta == 99 {
            return Err(Error::User { what: "filter", id, reason: "99".into() });
        }
        self.forward(id, meta.wrapping_neg(), src, dst)
    }
}

const RULE: BitshuffleRule = BitshuffleRule::Current;

fn writing(ids: [u8; 6], metas: [u8; 6], typesize: usize) -> Result<Pipeline> {
    Pipeline::for_writing(ids, metas, typesize, None, None, RULE, None)
}

fn reading(ids: [u8; 6], metas: [u8; 6], typesize: usize) -> Result<Pipeline> {
    Pipeline::for_reading(ids, metas, typesize, None, None, RULE, None)
}

fn filtered(pipeline: &Pipeline, isa: Isa, block: &[u8], reference: Option<&[u8]>) -> Vec<u8> {
    pipeline.forward(isa, block, reference, &mut Scratch::default(), Some(&Own)).unwrap().to_vec()
}

fn undone(pipeline: &Pipeline, isa: Isa, stage: &[u8], reference: Option<&[u8]>) -> Vec<u8> {
    let mut dst = vec![0xA5; stage.len()];
    pipeline.backward(isa, stage, &mut dst, reference, &mut Scratch::default(), Some(&Own)).unwrap();
    dst
}

#[test]
fn filters_that_are_not_built_in_are_named() {
    for (id, name) in [(5, "unknown"), (37, "unknown"), (200, "user")] {
        let refusal = Error::Unsupported { what: "filter", id, name };
        assert_eq!(reading([0, 0, 0, id, 0, 1], [1; 6], 4).unwrap_err(), refusal);
        assert_eq!(writing([0, 0, 0, id, 0, 1], [1; 6], 4).unwrap_err(), refusal);
    }
}

#[test]
fn the_old_bytedelta_is_read_but_not_written() {
    let ids = [0, 0, 0, 0, 0, BYTEDELTA_OLD];
    let refusal = Error::Unsupported { what: "filter", id: BYTEDELTA_OLD, name: "bytedelta_old" };
    assert_eq!(writing(ids, [0; 6], 1).unwrap_err(), refusal);
    let pipeline = reading(ids, [0; 6], 1).unwrap();
    assert_eq!(undone(&pipeline, Isa::detect(), &[1; 20], None)[14..], [15, 16, 1, 2, 3, 4]);
    let mut scratch = Scratch::default();
    let outcome = pipeline.forward(Isa::detect(), &[1; 20], None, &mut scratch, None);
    assert_eq!(outcome.unwrap_err(), refusal);
}

#[test]
fn delta_is_written_only_as_the_first_filter_and_once() {
    assert!(writing([0, DELTA, 0, SHUFFLE, 0, 0], [0; 6], 4).unwrap().needs_reference());
    for ids in [[SHUFFLE, DELTA, 0, 0, 0, 0], [DELTA, 0, DELTA, 0, 0, 0], [TRUNC_PREC, DELTA, 0, 0, 0, 0]] {
        let outcome = writing(ids, [5, 0, 0, 0, 0, 0], 4);
        assert!(matches!(outcome, Err(Error::Argument { name: "filters", found: 3, .. })), "{outcome:?}");
        assert!(reading(ids, [0; 6], 4).unwrap().needs_reference());
    }
    assert!(!writing([0, 0, 0, 0, 0, SHUFFLE], [0; 6], 4).unwrap().needs_reference());
}

#[test]
fn metas_of_truncations_are_checked_when_writing_only() {
    for id in [TRUNC_PREC, INT_TRUNC] {
        let ids = [0, 0, 0, 0, id, SHUFFLE];
        assert!(matches!(writing(ids, [0; 6], 4), Err(Error::Argument { name: "filters_meta", .. })));
        assert!(matches!(writing(ids, [1; 6], 3), Err(Error::Argument { name: "filters_meta", found: 3, .. })));
        assert!(reading(ids, [0; 6], 3).is_ok());
    }
}

#[test]
fn typesizes_out_of_range_are_refused() {
    for typesize in [0, 256, usize::MAX] {
        let outcome = reading([0, 0, 0, 0, 0, SHUFFLE], [0; 6], typesize);
        assert!(matches!(outcome, Err(Error::Argument { name: "typesize", .. })), "{outcome:?}");
    }
}

#[test]
fn filters_that_do_nothing_are_known() {
    let nothing = writing([0, SHUFFLE, 0, 0, SHUFFLE, INT_TRUNC], [0, 0, 0, 0, 1, 8], 1).unwrap();
    assert!(nothing.forward_is_identity() && nothing.backward_is_identity());
    let lossy = writing([0, 0, 0, 0, 0, TRUNC_PREC], [7; 6], 4).unwrap();
    assert!(!lossy.forward_is_identity() && lossy.backward_is_identity());
    let shuffled = writing([0, 0, 0, 0, 0, SHUFFLE], [4; 6], 1).unwrap();
    assert!(!shuffled.forward_is_identity() && !shuffled.backward_is_identity());
}

#[test]
fn identities_return_the_block_itself() {
    let (block, mut scratch) = (noise(100), Scratch::default());
    let pipeline = writing([0; 6], [0; 6], 4).unwrap();
    let out = pipeline.forward(Isa::detect(), &block, None, &mut scratch, None).unwrap();
    assert_eq!(out.as_ptr(), block.as_ptr());
    assert_eq!(undone(&pipeline, Isa::detect(), &block, None), block);
}

#[test]
fn a_lone_shuffle_is_known_by_its_width() {
    let width = |ids, metas| writing(ids, metas, 4).unwrap().only_shuffle();
    assert_eq!(width([0, 0, 0, 0, 0, SHUFFLE], [0; 6]), Some(4));
    assert_eq!(width([SHUFFLE, 0, 0, 0, 0, 0], [2; 6]), Some(2));
    assert_eq!(width([0, 0, 0, 0, TRUNC_PREC, SHUFFLE], [0, 0, 0, 0, 7, 0]), Some(4));
    assert_eq!(width([0, 0, 0, 0, 0, SHUFFLE], [1; 6]), None);
    assert_eq!(width([0, 0, 0, 0, SHUFFLE, BYTEDELTA], [0; 6]), None);
    assert_eq!(width([0, 0, 0, 0, 0, BITSHUFFLE], [0; 6]), None);
}

#[test]
fn bytedelta_takes_its_planes_from_meta_container_or_header() {
    let ids = [0, 0, 0, 0, 0, BYTEDELTA];
    let block = [10, 20, 30, 40, 50, 60];
    let out = |meta, itemsize| {
        let pipeline = Pipeline::for_writing(ids, [meta; 6], 2, itemsize, None, RULE, None).unwrap();
        filtered(&pipeline, Isa::detect(), &block, None)
    };
    assert_eq!(out(1, Some(3)), [10, 10, 10, 10, 10, 10]);
    assert_eq!(out(0, Some(3)), [10, 10, 30, 10, 50, 10]);
    assert_eq!(out(0, None), [10, 10, 10, 40, 10, 10]);
    assert_eq!(out(0, Some(1000)), block);
    assert!(Pipeline::for_writing(ids, [0; 6], 2, Some(0), None, RULE, None).is_err());
}

#[test]
fn the_users_filters_run_and_must_be_there() {
    let (ids, metas) = ([0, FIRST_USER, SHUFFLE, NDCELL, 0, 0], [0, 7, 0, 0, 0, 0]);
    let block = noise(101);
    let write = Pipeline::for_writing(ids, metas, 4, None, None, RULE, Some(&Own)).unwrap();
    let read = Pipeline::for_reading(ids, metas, 4, None, None, RULE, Some(&Own)).unwrap();
    let stage = filtered(&write, Isa::detect(), &block, None);
    assert_eq!(stage[100], block[0].wrapping_add(7));
    assert_eq!(undone(&read, Isa::detect(), &stage, None), block);
    let missing = Error::Unsupported { what: "filter", id: NDCELL, name: "ndcell" };
    let mut dst = vec![0; 101];
    let outcome = read.backward(Isa::detect(), &stage, &mut dst, None, &mut Scratch::default(), None);
    assert_eq!(outcome, Err(missing));
}

#[test]
fn a_users_filter_goes_before_the_one_that_is_built_in() {
    struct Every;
    impl UserFilter for Every {
        fn has(&self, _: u8) -> bool {
            true
        }
        fn forward(&self, id: u8, _: u8, _: &[u8], dst: &mut [u8]) -> Result<()> {
            dst.fill(id);
            Ok(())
        }
        fn backward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()> {
            self.forward(id, meta, src, dst)
        }
    }
    for id in [SHUFFLE, TRUNC_PREC, DELTA, BYTEDELTA_OLD, INT_TRUNC, NDCELL, 255] {
        let (ids, mut scratch) = ([0, BITSHUFFLE, 0, 0, 0, id], Scratch::default());
        let write = Pipeline::for_writing(ids, [0; 6], 4, None, None, RULE, Some(&Every)).unwrap();
        assert_eq!(write.forward(Isa::detect(), &[0; 3], None, &mut scratch, Some(&Every)), Ok(&[id; 3][..]));
        let mut dst = [0; 3];
        let read = Pipeline::for_reading(ids, [0; 6], 4, None, None, RULE, Some(&Every)).unwrap();
        read.backward(Isa::detect(), &[0; 3], &mut dst, None, &mut scratch, Some(&Every)).unwrap();
        assert_eq!(dst, [BITSHUFFLE; 3]);
    }
}

#[test]
fn what_a_users_filter_says_is_passed_on() {
    let mut metas = [0; 6];
    metas[5] = 99;
    let read = Pipeline::for_reading([0, 0, 0, 0, 0, FIRST_USER], metas, 4, None, None, RULE, Some(&Own)).unwrap();
    let outcome = read.backward(Isa::detect(), &[0; 8], &mut [0; 8], None, &mut Scratch::default(), Some(&Own));
    assert_eq!(outcome, Err(Error::User { what: "filter", id: FIRST_USER, reason: "99".into() }));
}

#[test]
fn nothing_of_an_earlier_block_shows_through_a_users_filter() {
    let pipeline =
        Pipeline::for_writing([0, 0, 0, 0, 0, FIRST_USER + 1], [0; 6], 1, None, None, RULE, Some(&Own)).unwrap();
    let mut scratch = Scratch { a: vec![0xEE; 64], b: vec![0xEE; 64] };
    let out = pipeline.forward(Isa::detect(), &[1; 32], None, &mut scratch, Some(&Own)).unwrap();
    assert_eq!(out, [0; 32]);
}

#[test]
fn a_short_reference_and_sides_of_different_length_are_refused() {
    let pipeline = writing([DELTA, 0, 0, 0, 0, 0], [0; 6], 1).unwrap();
    let mut scratch = Scratch::default();
    let expected = Error::Argument { name: "reference", expected: "8 bytes or more".into(), found: 7 };
    let outcome = pipeline.forward(Isa::detect(), &[0; 8], Some(&[0; 7]), &mut scratch, None);
    assert_eq!(outcome.unwrap_err(), expected);
    let outcome = pipeline.backward(Isa::detect(), &[0; 8], &mut [0; 8], Some(&[0; 7]), &mut scratch, None);
    assert_eq!(outcome, Err(expected));
    let outcome = pipeline.backward(Isa::detect(), &[0; 8], &mut [0; 9], None, &mut scratch, None);
    assert_eq!(outcome, Err(Error::Destination { needed: 8, got: 9 }));
}

#[test]
fn delta_with_a_lossy_filter_behind_it_reads_back_as_truncated() {
    let write = writing([DELTA, 0, TRUNC_PREC, 0, SHUFFLE, 0], [0, 0, 10, 0, 0, 0], 4).unwrap();
    let truncate = writing([TRUNC_PREC, 0, 0, 0, 0, 0], [10; 6], 4).unwrap();
    let (first, second) = (noise(400), noise(800)[400..800].to_vec());
    let isa = Isa::detect();
    let block0 = undone(&write, isa, &filtered(&write, isa, &first, None), None);
    assert_eq!(block0, filtered(&truncate, isa, &first, None));
    let stage = filtered(&write, isa, &second, Some(&block0));
    assert_eq!(undone(&write, isa, &stage, Some(&block0)), filtered(&truncate, isa, &second, None));
}

#[test]
fn version_2_reaches_bitshuffle() {
    let ids = [0, 0, 0, 0, 0, BITSHUFFLE];
    let old = Pipeline::for_reading(ids, [0; 6], 1, None, None, BitshuffleRule::Version2, None).unwrap();
    let new = reading(ids, [0; 6], 1).unwrap();
    let stage = noise(12);
    assert_eq!(undone(&old, Isa::detect(), &stage, None), stage);
    assert_ne!(undone(&new, Isa::detect(), &stage, None), stage);
    assert_eq!(undone(&old, Isa::detect(), &stage[..8], None), undone(&new, Isa::detect(), &stage[..8], None));
}

/// Slots that lose nothing: DELTA first, if at all.
fn lossless_slots() -> impl Strategy<Value = ([u8; 6], [u8; 6])> {
    let id = prop_oneof![
        3 => Just(NOFILTER),
        3 => Just(SHUFFLE),
        3 => Just(BITSHUFFLE),
        2 => Just(BYTEDELTA),
        1 => Just(FIRST_USER),
        1 => Just(NDCELL),
    ];
    let meta = prop_oneof![3 => Just(0), 2 => 1..=32_u8, 1 => 1..=98_u8];
    (prop::array::uniform6(id), prop::array::uniform6(meta), any::<bool>()).prop_map(|(mut ids, metas, delta)| {
        if delta {
            ids[0] = DELTA;
        }
        (ids, metas)
    })
}

fn typesizes() -> impl Strategy<Value = usize> {
    prop_oneof![3 => prop::sample::select(vec![1, 2, 4, 8, 16]), 1 => 1..=255_usize]
}

proptest! {
    #[test]
    fn any_pipeline_reads_back_what_it_wrote_and_every_isa_agrees(
        (ids, metas) in lossless_slots(),
        typesize in typesizes(),
        itemsize in prop::option::of(1..400_usize),
        block in prop::collection::vec(any::<u8>(), 0..5000),
        first_block in prop::option::of(prop::collection::vec(any::<u8>(), 5000)),
    ) {
        let write = Pipeline::for_writing(ids, metas, typesize, itemsize, None, RULE, Some(&Own)).unwrap();
        let read = Pipeline::for_reading(ids, metas, typesize, itemsize, None, RULE, Some(&Own)).unwrap();
        let reference = first_block.as_deref();
        let expected = filtered(&write, Isa::scalar(), &block, reference);
        prop_assert_eq!(expected.len(), block.len());
        on_every_isa(|isa| {
            assert_eq!(filtered(&write, isa, &block, reference), expected, "{}", isa.name());
            assert_eq!(undone(&read, isa, &expected, reference), block, "{}", isa.name());
        });
    }

    #[test]
    fn any_slots_of_a_file_are_refused_or_undone(
        ids in prop::array::uniform6(prop_oneof![0..37_u8, any::<u8>()]),
        metas in any::<[u8; 6]>(),
        typesize in 1..=255_usize,
        version2 in any::<bool>(),
        stage in prop::collection::vec(any::<u8>(), 0..1000),
        first_block in prop::option::of(prop::collection::vec(any::<u8>(), 1000)),
    ) {
        let rule = if version2 { BitshuffleRule::Version2 } else { RULE };
        if let Ok(read) = Pipeline::for_reading(ids, metas, typesize, None, None, rule, None) {
            let expected = undone(&read, Isa::scalar(), &stage, first_block.as_deref());
            on_every_isa(|isa| {
                assert_eq!(undone(&read, isa, &stage, first_block.as_deref()), expected, "{}", isa.name());
            });
        }
    }
}

#[test]
fn filters_that_are_undone_together_give_what_they_give_one_by_one() {
    let slots = [
        [0, 0, 0, 0, SHUFFLE, BYTEDELTA],
        [0, 0, 0, 0, DELTA, SHUFFLE],
        [0, 0, 0, DELTA, SHUFFLE, BYTEDELTA],
        [0, 0, 0, 0, 0, BITSHUFFLE],
    ];
    for (ids, typesize) in slots.into_iter().flat_map(|ids| [2, 4, 8, 16].map(|typesize| (ids, typesize))) {
        let pipeline = reading(ids, [0; 6], typesize).unwrap();
        for nitems in [1, 2, 63, 64, 264, TILE / typesize, TILE / typesize + 1, 3 * TILE / typesize + 17] {
            let (stage, reference) = (noise(nitems * typesize), noise(nitems * typesize + 5));
            assert_eq!(pipeline.joint(true).map(|joint| joint.width), Some(typesize));
            let mut expected = stage.clone();
            for step in pipeline.steps.iter().rev() {
                let src = expected.clone();
                step.backward(Isa::scalar(), &src, &mut expected, Some(&reference), None).unwrap();
            }
            on_every_isa(|isa| {
                let back = undone(&pipeline, isa, &stage, Some(&reference));
                assert_eq!(back, expected, "{} {ids:?} width {typesize} items {nitems}", isa.name());
            });
        }
    }
    // The first block has no reference, and its words go on from tile to tile.
    assert_eq!(reading([0, 0, 0, 0, DELTA, SHUFFLE], [0; 6], 8).unwrap().joint(false), None);
    // Planes that are not those of the shuffle.
    assert_eq!(reading([0, 0, 0, 0, SHUFFLE, BYTEDELTA], [0, 0, 0, 0, 0, 4], 8).unwrap().joint(false), None);
    assert_eq!(reading([0, 0, 0, 0, 0, SHUFFLE], [0; 6], 12).unwrap().joint(false), None);
    assert_eq!(reading([0, 0, 0, 0, DELTA, BITSHUFFLE], [0; 6], 8).unwrap().joint(false), None);
    assert_eq!(reading([0, 0, 0, 0, 0, BITSHUFFLE], [0; 6], 12).unwrap().joint(false), None);
}
