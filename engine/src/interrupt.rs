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
    pub fn at_each_task(go_on: &'a (dyn Fn() -> bool + Sync)) -> Self {
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
pub fn go_on(interrupt: Option<&Interrupt<'_>>, nbytes: usize) -> Result<()> {
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
