//! Threads: a list of tasks, worked off by the caller and helpers.
//!
//! Tasks own what they write to, so their order does not matter to the result; the engine gives
//! the same bytes for every number of threads. The pool lives as long as the process, grows to the
//! largest number asked for, and is built anew in a child after fork, whose copy of it has no
//! threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;

struct Pool {
    pid: u32,
    helpers: usize,
    /// Helpers that work for somebody.
    busy: AtomicUsize,
    threads: rayon::ThreadPool,
}

static POOL: ArcSwapOption<Pool> = ArcSwapOption::const_empty();

/// Return a pool of this process with at least `helpers` threads, or None when threads cannot be had.
fn pool(helpers: usize) -> Option<Arc<Pool>> {
    let pid = std::process::id();
    let current = POOL.load_full();
    if let Some(pool) = &current
        && pool.pid == pid
        && pool.helpers >= helpers
    {
        return current;
    }
    let threads =
        rayon::ThreadPoolBuilder::new().num_threads(helpers).thread_name(|n| format!("superchunk-{n}")).build().ok()?;
    let fresh = Arc::new(Pool { pid, helpers, busy: AtomicUsize::new(0), threads });
    if let Some(old) = POOL.swap(Some(Arc::clone(&fresh)))
        && old.pid != pid
    {
        // Its threads stayed in the parent and may have held its locks: never touch it again.
        std::mem::forget(old);
    }
    if let Some(current) = current
        && current.pid != pid
    {
        std::mem::forget(current);
    }
    Some(fresh)
}

/// Give the threads back to the system; the next parallel job makes new ones.
pub fn free() {
    if let Some(old) = POOL.swap(None)
        && old.pid != std::process::id()
    {
        std::mem::forget(old);
    }
}

/// More threads than this only get into each other's way, whatever is asked for.
fn most_threads() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| std::thread::available_parallelism().map_or(16, |cores| (4 * cores.get()).max(16)))
}

/// Find out now what is found out once.
pub(crate) fn prepare() {
    most_threads();
}

/// Helpers taken for one job. Only idle ones: a job that waited for those of another would take as long as that.
struct Hired<'p> {
    pool: &'p Pool,
    count: usize,
}

impl<'p> Hired<'p> {
    fn new(pool: &'p Pool, wanted: usize) -> Self {
        let idle = pool.helpers.saturating_sub(pool.busy.fetch_add(wanted, Ordering::AcqRel));
        let count = wanted.min(idle);
        pool.busy.fetch_sub(wanted - count, Ordering::AcqRel);
        Self { pool, count }
    }
}

impl Drop for Hired<'_> {
    fn drop(&mut self) {
        self.pool.busy.fetch_sub(self.count, Ordering::AcqRel);
    }
}

/// Run `lead` on the caller's thread and `help` on others, up to `nthreads` in all, and return when all are done.
///
/// There may be fewer threads, or none but the caller's: `lead` must not rely on help, nor `help` wait for ever.
pub(crate) fn assisted(nthreads: usize, help: impl Fn() + Sync, lead: impl FnOnce()) {
    let wanted = nthreads.min(most_threads()).saturating_sub(1);
    let pool = if wanted > 0 { pool(wanted) } else { None };
    let hired = pool.as_ref().map(|pool| Hired::new(pool, wanted));
    match (&pool, hired.as_ref().map_or(0, |hired| hired.count)) {
        (Some(pool), helpers @ 1..) => pool.threads.in_place_scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|_| help());
            }
            lead();
        }),
        _ => lead(),
    }
}

/// Run `work` on each task, with its number, on up to `nthreads` threads, the caller's being one.
///
/// # Errors
///
/// The error of the first task, by number, that failed among those that ran; the others are given up.
pub fn run<T, E, F>(nthreads: usize, tasks: Vec<T>, work: F) -> Result<(), E>
where
    T: Send,
    E: Send,
    F: Fn(usize, T) -> Result<(), E> + Sync,
{
    let nthreads = nthreads.min(tasks.len());
    if nthreads <= 1 {
        return tasks.into_iter().enumerate().try_for_each(|(n, task)| work(n, task));
    }
    let queue = Mutex::new(tasks.into_iter().enumerate());
    let failed = AtomicBool::new(false);
    let failure: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let turn = || {
        while !failed.load(Ordering::Relaxed) {
            let Some((n, task)) = queue.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
            if let Err(error) = work(n, task) {
                let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(earlier, _)| n < *earlier) {
                    *first = Some((n, error));
                }
                failed.store(true, Ordering::Relaxed);
            }
        }
    };
    assisted(nthreads, turn, turn);
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_for_any_number_of_threads() {
        for nthreads in 1..6 {
            let mut done = [0u8; 100];
            let outcome: Result<(), ()> = run(nthreads, done.iter_mut().collect(), |n, slot: &mut u8| {
                *slot += u8::try_from(n).unwrap();
                Ok(())
            });
            assert_eq!(outcome, Ok(()));
            assert!(done.iter().enumerate().all(|(n, &slot)| usize::from(slot) == n));
        }
    }

    #[test]
    fn a_failure_ends_the_job_with_its_error() {
        let failing = |n: usize, (): ()| {
            if n == 3 { Err(n) } else { Ok(()) }
        };
        for nthreads in [1, 2, 4] {
            assert_eq!(run(nthreads, vec![(); 10], failing), Err(3));
        }
    }
}
