//! Whether the caller still wants the result of a long call.
//!
//! A call is cut into tasks: blocks, streams, samples, pieces, requests. Before each of them the thread that runs it calls
//! [`go_on`] with the task's size. The thread that made the call asks the caller every 50 ms; if the caller gives up, every
//! thread stops before its next task, and the call fails with [`Error::Interrupted`]. A task itself is not interrupted:
//! the codecs have no way out of a stream.
//!
//! Short calls do not even read the clock. Asking takes a twentieth of the time of a call at most.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// From one question to the next.
const INTERVAL: Duration = Duration::from_millis(50);
/// A question may take such a part of the time.
const SHARE: u32 = 20;
/// Bytes of tasks after which the clock is read.
const STEP: usize = 64 * 1024;

/// A call that its caller may give up.
pub struct Interrupt<'a> {
    /// Whether the call is to go on. It is asked on the thread that made the call.
    go_on: &'a (dyn Fn() -> bool + Sync),
    interval: Duration,
    share: u32,
    step: usize,
    /// The thread that made the call.
    caller: usize,
    /// Bytes of that thread's tasks since the clock was read.
    nbytes: AtomicUsize,
    /// When to ask next. Only that thread takes the lock.
    due: Mutex<Option<Instant>>,
    stopped: AtomicBool,
}

impl<'a> Interrupt<'a> {
    /// Make one for a call of this thread. `go_on` is asked now and then.
    pub fn new(go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            go_on,
            interval: INTERVAL,
            share: SHARE,
            step: STEP,
            caller: this_thread(),
            nbytes: AtomicUsize::new(0),
            due: Mutex::new(None),
            stopped: AtomicBool::new(false),
        }
    }

    /// Make one that asks before each task.
    #[cfg(test)]
    pub(crate) fn at_each_task(go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { interval: Duration::ZERO, share: 0, step: 0, due: Mutex::new(Some(Instant::now())), ..Self::new(go_on) }
    }

    /// Fail if the caller has given up. A task of `nbytes` bytes is next.
    fn check(&self, nbytes: usize) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if this_thread() != self.caller {
            return Ok(());
        }
        let sum = self.nbytes.load(Ordering::Relaxed).saturating_add(nbytes);
        if sum < self.step {
            self.nbytes.store(sum, Ordering::Relaxed);
            return Ok(());
        }
        self.nbytes.store(0, Ordering::Relaxed);
        let now = Instant::now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if now < *due.get_or_insert(now + self.interval) {
            return Ok(());
        }
        let go_on = (self.go_on)();
        let after = Instant::now();
        *due = Some(after + self.interval.max((after - now) * self.share));
        if go_on {
            return Ok(());
        }
        self.stopped.store(true, Ordering::Relaxed);
        Err(Error::Interrupted)
    }
}

impl std::fmt::Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupt").field("stopped", &self.stopped).finish_non_exhaustive()
    }
}

/// Fail if there is a caller who has given up. A task of `nbytes` bytes is next.
///
/// # Errors
///
/// [`Error::Interrupted`].
#[inline]
pub(crate) fn go_on(interrupt: Option<&Interrupt<'_>>, nbytes: usize) -> Result<()> {
    interrupt.map_or(Ok(()), |interrupt| interrupt.check(nbytes))
}

/// A number that this thread has and no other that lives.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::{Geometry, Pick, Strided, pack, read_box, read_points};
    use crate::encode::{MAX_OVERHEAD, encode, encode_vlblocks};
    use crate::params::{EncodeOptions, EncodeParams};
    use crate::read::{ReadOptions, Request, read, read_vlblocks};
    use crate::source::{Place, Source};
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
    fn check(least: usize, call: impl Fn(&Interrupt<'_>) -> Result<()>) {
        let (outcome, asked) = given_up(usize::MAX, &call);
        assert_eq!(outcome, Ok(()));
        assert!(asked >= least, "{asked} questions, expected {least}");
        for at in [0, 1, least / 2, least - 1] {
            assert_eq!(given_up(at, &call), (Err(Error::Interrupted), at + 1));
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
        let source = Source::Bytes(&chunk[..length]);
        check(64, |interrupt| {
            let mut dst = vec![0; NBYTES];
            let whole = Request { place: source.into(), nbytes: None, start: 0, dst: &mut dst };
            read(vec![whole], options(interrupt)).map_err(|failure| failure.error)
        });
        check(100, |interrupt| {
            let mut dst = [0; 100];
            let one = |dst| Request { place: source.into(), nbytes: None, start: 5, dst };
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
        let places = [Place::from(Source::Bytes(&chunk[..length]))];
        let picks = [Pick::Range { start: 0, stop: 64, step: 1 }, Pick::Range { start: 3, stop: 10, step: 1 }];
        check(64, |interrupt| {
            read_box(&geometry, &picks, &places, &mut [0; 64 * 7], options(interrupt)).map_err(|failure| failure.error)
        });
        let positions: Vec<i64> = (0..64).map(|block| block << 14).collect();
        check(64, |interrupt| {
            read_points(&geometry, &places, &[0; 64], &positions, &mut [0; 64], options(interrupt))
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
            let (outcome, _) =
                given_up(usize::MAX, |interrupt| encode(&content, &params, None, Some(interrupt), &mut out));
            assert!(outcome.is_ok());
        }
    }

    #[test]
    fn who_asks_seldom_asks_nothing_in_a_short_call() {
        let never = || -> bool { panic!("a short call has asked") };
        let interrupt = Interrupt::new(&never);
        for _ in 0..100 {
            interrupt.check(STEP / 200).unwrap();
        }
        assert_eq!(*interrupt.due.lock().unwrap(), None, "not even the clock was read");
    }
}
