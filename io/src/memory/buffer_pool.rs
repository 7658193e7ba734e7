//! Memory of large results, which is kept for the next one when a result is no longer needed.
//!
//! Memory fresh from the system costs about as much as decoding into it: each page is cleared when it is first written
//! to. Who reads one large piece of an array after the other gives back and asks for the same memory again and again, so it
//! is kept, up to a limit. Meanwhile the system may take its pages for others (`MADV_FREE`); it then gives cleared ones.
//!
//! ```text
//! in use   [ 64 MiB ]      [ 64 MiB ]        the result of now and the one of before
//! kept                [ 64 MiB ]             for the next
//! ```
//!
//! A request that nothing kept fits gives as much of it back to the system as it asks for, so that what is kept comes out
//! of what was in use at some time, and is never on top of that.

use std::collections::VecDeque;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Lengths are multiples of a large page.
const LARGE_PAGE: usize = 2 * 1024 * 1024;
/// Bytes that are kept if nobody says otherwise.
const USUAL_LIMIT: usize = 256 * 1024 * 1024;
/// What is kept serves a request of at least so many fourths of it.
const LEAST_FOURTHS: usize = 3;

/// Set in a process that was forked while another thread had the lock: nobody will let go of it.
static LOST: AtomicBool = AtomicBool::new(false);

static POOL: Mutex<Pool> = Mutex::new(Pool { free: VecDeque::new(), nbytes: 0 });
static LIMIT: AtomicUsize = AtomicUsize::new(USUAL_LIMIT);

/// What is kept, the oldest first.
struct Pool {
    free: VecDeque<Mapping>,
    nbytes: usize,
}

/// Bytes of memory from the system, readable and writable. It is theirs alone who have the value.
pub struct Memory {
    /// None only while it is dropped.
    mapping: Option<Mapping>,
    nbytes: usize,
}

/// Whole pages, which go back to the system when this is dropped.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

#[expect(unsafe_code, reason = "a pointer is taken to be tied to its thread")]
// SAFETY: the pages belong to the process, and to this value alone.
unsafe impl Send for Mapping {}

#[expect(unsafe_code, reason = "a pointer is taken to be tied to its thread")]
// SAFETY: a shared mapping gives its address and length and no access.
unsafe impl Sync for Mapping {}

impl Mapping {
    #[cfg(target_os = "linux")]
    fn new(length: usize) -> io::Result<Self> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        #[expect(unsafe_code, reason = "a system call about memory")]
        // SAFETY: the system chooses an address range that is free.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, kind) }?;
        let new = Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, length };
        #[expect(unsafe_code, reason = "a system call about memory")]
        // SAFETY: the pages are ours, and this advice leaves what is in them as it is.
        let _ = unsafe { madvise(start, length, Advice::LinuxHugepage) };
        Ok(new)
    }

    /// The system is asked for a lot on Linux only.
    #[cfg(not(target_os = "linux"))]
    fn new(_length: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Let the system take the pages, with what is in them, if it needs any before they are written to again.
    fn lend(&self) {
        #[cfg(target_os = "linux")]
        {
            use rustix::mm::{Advice, madvise};
            #[expect(unsafe_code, reason = "a system call about memory")]
            // SAFETY: the pages are ours, and nobody counts on what is in them. Whether the system heeds this or not,
            // they can be used as before.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.length, Advice::LinuxFree) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        {
            #[expect(unsafe_code, reason = "a system call about memory")]
            // SAFETY: the pages are ours, and nobody looks at them any more.
            let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

impl Pool {
    /// The kept mapping that fits best.
    fn take(&mut self, length: usize) -> Option<Mapping> {
        let fits = |mapping: &Mapping| length <= mapping.length && mapping.length / 4 * LEAST_FOURTHS <= length;
        let mappings = self.free.iter().enumerate().filter(|(_, mapping)| fits(mapping));
        let (index, _) = mappings.min_by_key(|(_, mapping)| mapping.length)?;
        let mapping = self.free.remove(index)?;
        self.nbytes -= mapping.length;
        Some(mapping)
    }

    /// Take out the oldest, of at least `nbytes` bytes together if there are as many.
    fn oldest(&mut self, nbytes: usize) -> Vec<Mapping> {
        let mut out = Vec::new();
        let mut found = 0;
        while found < nbytes
            && let Some(mapping) = self.free.pop_front()
        {
            found += mapping.length;
            self.nbytes -= mapping.length;
            out.push(mapping);
        }
        out
    }
}

impl Memory {
    /// Get `nbytes` bytes with anything in them.
    ///
    /// # Errors
    ///
    /// The system has no such amount.
    pub fn new(nbytes: usize) -> io::Result<Self> {
        let length = nbytes.max(1).checked_next_multiple_of(LARGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        // A process that was forked while another thread had the lock does without.
        let (found, surplus) = match POOL.try_lock() {
            Ok(mut pool) => match pool.take(length) {
                None => (None, pool.oldest(length)),
                found => (found, Vec::new()),
            },
            Err(_) => (None, Vec::new()),
        };
        drop(surplus);
        let mapping = found.map_or_else(|| Mapping::new(length), Ok)?;
        Ok(Self { mapping: Some(mapping), nbytes })
    }

    /// Where the bytes begin.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.mapping.as_ref().map_or(std::ptr::null_mut(), |mapping| mapping.start.as_ptr())
    }

    /// How many bytes there are.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(mapping) = self.mapping.take() else { return };
        mapping.lend();
        let limit = LIMIT.load(Ordering::Relaxed);
        if let Ok(mut pool) = POOL.try_lock()
            && mapping.length <= limit
        {
            pool.nbytes += mapping.length;
            pool.free.push_back(mapping);
            let surplus = pool.nbytes.saturating_sub(limit);
            let surplus = pool.oldest(surplus);
            drop(pool);
            drop(surplus);
        }
    }
}

/// What is kept; None in a process that was forked while another thread had it. It is never had for longer than it takes
/// to move some entries.
fn pool() -> Option<MutexGuard<'static, Pool>> {
    if LOST.load(Ordering::Relaxed) {
        return None;
    }
    Some(POOL.lock().unwrap_or_else(PoisonError::into_inner))
}

/// To be called in a child of a fork, which has one thread: find out whether a thread of the parent had the lock. Then
/// nothing is kept in this process.
pub fn after_fork() {
    if matches!(POOL.try_lock(), Err(TryLockError::WouldBlock)) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Keep at most `nbytes` from now on, and say how many it were.
pub fn set_limit(nbytes: usize) -> usize {
    let before = LIMIT.swap(nbytes, Ordering::Relaxed);
    let surplus = pool().map(|mut pool| {
        let surplus = pool.nbytes.saturating_sub(nbytes);
        pool.oldest(surplus)
    });
    drop(surplus);
    before
}

/// Give back to the system all that is kept.
pub fn free() {
    let all = pool().map(|mut pool| pool.oldest(usize::MAX));
    drop(all);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn pool() -> (usize, usize) {
        let pool = POOL.lock().expect("no test has failed with it");
        assert_eq!(pool.free.iter().map(|mapping| mapping.length).sum::<usize>(), pool.nbytes);
        (pool.free.len(), pool.nbytes / MIB)
    }

    // One test: what is kept is the process's.
    #[test]
    fn what_is_given_back_is_kept_up_to_the_limit_and_taken_again() {
        let usual = set_limit(64 * MIB);
        assert_eq!(usual, USUAL_LIMIT);
        let first = Memory::new(10 * MIB - 5).unwrap();
        assert_eq!(first.nbytes(), 10 * MIB - 5);
        let at = first.start();
        drop(first);
        assert_eq!(pool(), (1, 10));
        let again = Memory::new(9 * MIB).unwrap();
        assert_eq!((again.start(), pool()), (at, (0, 0)), "three fourths and more of what is kept fit");
        drop(again);
        let other = Memory::new(4 * MIB).unwrap();
        assert_ne!(other.start(), at);
        assert_eq!(pool(), (0, 0), "what did not fit went back");
        let two = [Memory::new(40 * MIB).unwrap(), Memory::new(40 * MIB).unwrap()];
        drop(two);
        drop(other);
        assert_eq!(pool(), (2, 44), "the oldest went back");
        let small = Memory::new(0).unwrap();
        assert_eq!(pool(), (1, 4), "as much as was asked for, in whole pieces");
        drop(Memory::new(100 * MIB).unwrap());
        assert_eq!(pool(), (0, 0), "larger than the limit");
        drop(small);
        assert_eq!(pool(), (1, 2));
        free();
        assert_eq!(pool(), (0, 0));
        assert_eq!(set_limit(0), 64 * MIB);
        drop(Memory::new(MIB).unwrap());
        assert_eq!(pool(), (0, 0), "nothing is kept");
        assert!(Memory::new(usize::MAX).is_err());
        assert!(Memory::new(usize::MAX / 2).is_err());
        // A child whose parent's thread was in there goes without, and waits for nobody.
        after_fork();
        assert!(super::pool().is_some());
        set_limit(usual);
        let guard = POOL.lock().expect("no test has failed with it");
        after_fork();
        assert_eq!(set_limit(MIB), usual);
        free();
        drop(Memory::new(MIB).unwrap());
        drop(guard);
        LOST.store(false, Ordering::Relaxed);
        assert_eq!(pool(), (0, 0));
        set_limit(usual);
    }
}
