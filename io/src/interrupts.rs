//! Tests that every long call stops when its caller gives it up.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::boxes::{Geometry, Pick, Strided, pack, read_box, read_points};
use crate::read::{ReadOptions, Request, read, read_vlblocks};
use superchunk_engine::Error;
use superchunk_engine::encode::{MAX_OVERHEAD, encode, encode_vlblocks};
use superchunk_engine::interrupt::Interrupt;
use superchunk_engine::params::{EncodeOptions, EncodeParams};
use superchunk_engine::source::Source;

use crate::source::ChunkLocation;
use crate::testing::noise;

const BLOCK: usize = 1 << 14;
const NBYTES: usize = 64 * BLOCK;

fn params(codec: u8, nthreads: usize) -> EncodeParams {
    let options = EncodeOptions {
        codec,
        codec_meta: 0,
        clevel: 5,
        typesize: 1,
        blocksize: BLOCK,
        splitmode: 3,
        filters: [0; 6],
        filters_meta: [0; 6],
        shape: None,
        use_dict: false,
        blosc1: false,
        nthreads,
    };
    EncodeParams::new(options, None).unwrap()
}

fn content() -> Vec<u8> {
    noise(NBYTES / 16, 1).iter().flat_map(|byte| [*byte; 16]).collect()
}

fn options<'i>(interrupt: &'i Interrupt<'i>) -> ReadOptions<'i> {
    ReadOptions { interrupt: Some(interrupt), ..ReadOptions::default() }
}

/// Give a call up at its question number `at`, from 0; returns what it said and how often it has asked.
fn given_up<T>(at: usize, call: impl FnOnce(&Interrupt<'_>) -> T) -> (T, usize) {
    let asked = AtomicUsize::new(0);
    let go_on = || asked.fetch_add(1, Ordering::Relaxed) < at;
    let outcome = call(&Interrupt::at_each_task(&go_on));
    (outcome, asked.into_inner())
}

/// Check that a call asks before each of its tasks, and asks no more once it was told to stop.
fn check<E: From<Error> + Debug + PartialEq>(least: usize, call: impl Fn(&Interrupt<'_>) -> Result<(), E>) {
    let (outcome, asked) = given_up(usize::MAX, &call);
    assert_eq!(outcome, Ok(()));
    assert!(asked >= least, "{asked} questions, expected {least}");
    for at in [0, 1, least / 2, least - 1] {
        assert_eq!(given_up(at, &call), (Err(E::from(Error::Interrupted)), at + 1));
    }
}

#[test]
fn compressing_stops_before_any_task() {
    let content = content();
    let mut out = vec![0; NBYTES + MAX_OVERHEAD];
    for codec in [0, 1, 2, 4, 5] {
        let params = params(codec, 1);
        let out = std::cell::RefCell::new(&mut out);
        check(64, |interrupt| encode(&content, &params, None, Some(interrupt), &mut out.borrow_mut()).map(drop));
    }
    let blocks: Vec<&[u8]> = content.chunks(BLOCK).collect();
    check(64, |interrupt| encode_vlblocks(&blocks, &params(5, 1), None, Some(interrupt)).map(drop));
}

#[test]
fn reading_stops_before_any_task() {
    let content = content();
    let mut chunk = vec![0; NBYTES + MAX_OVERHEAD];
    let length = encode(&content, &params(1, 1), None, None, &mut chunk).unwrap();
    let location = ChunkLocation::Bytes(&chunk[..length]);
    check(64, |interrupt| {
        let mut dst = vec![0; NBYTES];
        let whole = Request { location, nbytes: None, start: 0, dst: &mut dst };
        read(vec![whole], options(interrupt)).map_err(|failure| failure.error)
    });
    check(100, |interrupt| {
        let mut dst = [0; 100];
        let one = |dst| Request { location, nbytes: None, start: 5, dst };
        let many = dst.chunks_mut(1).map(one).collect();
        read(many, options(interrupt)).map_err(|failure| failure.error)
    });
    let blocks: Vec<&[u8]> = content.chunks(BLOCK).collect();
    let vlblocks = encode_vlblocks(&blocks, &params(1, 1), None, None).unwrap();
    check(64, |interrupt| read_vlblocks(Source::Bytes(&vlblocks), options(interrupt)).map(drop));
}

#[test]
fn boxes_and_points_stop_before_any_block() {
    let (content, params) = (content(), params(1, 1));
    let geometry = Geometry::new(&[64, 1 << 14], &[1, 1 << 14], 1).unwrap();
    let mut chunk = vec![0; NBYTES + MAX_OVERHEAD];
    let src = Strided { bytes: &content, offset: 0, strides: &[1 << 14, 1], extent: &[64, 1 << 14] };
    check(64, |interrupt| {
        let mut out = vec![0; NBYTES + MAX_OVERHEAD];
        pack(&geometry, &params, src, None, Some(interrupt), &mut out).map(drop)
    });
    let length = pack(&geometry, &params, src, None, None, &mut chunk).unwrap();
    let locations = [ChunkLocation::Bytes(&chunk[..length])];
    let picks = [Pick::Range { start: 0, stop: 64, step: 1 }, Pick::Range { start: 3, stop: 10, step: 1 }];
    check(64, |interrupt| {
        read_box(&geometry, &picks, &locations, &mut [0; 64 * 7], options(interrupt)).map_err(|failure| failure.error)
    });
    let positions: Vec<i64> = (0..64).map(|block| block << 14).collect();
    check(64, |interrupt| {
        read_points(&geometry, &locations, &[0; 64], &positions, &mut [0; 64], options(interrupt))
            .map_err(|failure| failure.error)
    });
}

#[test]
fn all_threads_stop() {
    let content = content();
    let mut out = vec![0; NBYTES + MAX_OVERHEAD];
    for nthreads in [2, 3, 8] {
        let params = params(5, nthreads);
        let (outcome, _) = given_up(0, |interrupt| encode(&content, &params, None, Some(interrupt), &mut out));
        assert_eq!(outcome, Err(Error::Interrupted));
        let (outcome, _) = given_up(usize::MAX, |interrupt| encode(&content, &params, None, Some(interrupt), &mut out));
        assert!(outcome.is_ok());
    }
}
