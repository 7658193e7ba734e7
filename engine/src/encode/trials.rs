//! Trials: samples of streams, compressed with several searches to see what each leaves.
//!
//! Which trials are needed depends on what came of others, so one thread alone runs one after the other. Threads that
//! would have to wait for it run what is likely to be needed next. All the same only those count that one thread alone
//! would have asked for, so the outcome does not depend on the number of threads.

use std::ops::RangeInclusive;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::codecs::Encoder;
use crate::error::Result;

/// Quicker searches may leave more of a block than the level's own by such a part.
const SPARE: usize = 192;
/// A stream that is left shorter by such a part at most is stored plain.
pub(super) const CLOSE: usize = 192;
/// Where the quicker searches are much alike, one that misses by more than such a part stands for all.
const FAR: usize = 16;
/// Where the searches next to the level's own miss by more than so many times what may be spent, no other is tried.
const TOO_FAR: usize = 3;

/// Whether it is worth it to leave `length` of so many bytes.
pub(super) fn pays(length: usize, of: &[u8]) -> bool {
    length + of.len() / CLOSE < of.len()
}

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Open,
    Running,
    /// It left so many bytes.
    Done(usize),
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Try a sample with a search.
    Run { n: usize, candidate: usize },
    /// Wait for what others try.
    Wait,
    /// There is nothing more to be asked.
    Over(Outcome),
}

/// What all threads know.
#[derive(Debug)]
struct Board {
    /// By sample and by search. That of the last search may be done from the beginning.
    trials: Vec<Vec<Trial>>,
    /// What came of an only sample, by search.
    kept: Vec<Vec<u8>>,
}

/// What the trials came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Bytes that the last search leaves of each sample.
    pub(super) sizes: Vec<usize>,
    /// By how many bytes more each of the others leaves, as far as they were tried: [`usize::MAX`] if one was not, and
    /// nothing at all for samples where none is of use.
    pub(super) losses: Vec<Vec<usize>>,
    /// Bytes that quicker searches may leave more, all in all.
    pub(super) spare: usize,
}

/// The trials of some samples.
#[derive(Debug)]
pub(super) struct Trials<'s> {
    samples: &'s [&'s [u8]],
    first: usize,
    last: usize,
    board: Mutex<Board>,
    changed: Condvar,
}

impl<'s> Trials<'s> {
    /// Trials with `candidates`, of which the last is tried with each sample but those whose size is known beforehand.
    pub(super) fn new(samples: &'s [&'s [u8]], known: &[Option<usize>], candidates: RangeInclusive<usize>) -> Self {
        let (first, last) = candidates.into_inner();
        let trials_of = |size: &Option<usize>| {
            let mut trials = vec![Trial::Open; last + 1];
            trials[last] = size.map_or(Trial::Open, Trial::Done);
            trials
        };
        let trials = known.iter().map(trials_of).collect();
        let kept = vec![Vec::new(); if samples.len() == 1 { last + 1 } else { 0 }];
        Self { samples, first, last, board: Mutex::new(Board { trials, kept }), changed: Condvar::new() }
    }

    /// Bytes to be searched, if all trials are run.
    pub(super) fn weight(&self) -> usize {
        let board = self.lock();
        let open = |&(_, trials): &(&&[u8], &Vec<Trial>)| trials[self.last] == Trial::Open;
        let length: usize = self.samples.iter().zip(&board.trials).filter(open).map(|(sample, _)| sample.len()).sum();
        length * (self.last + 1 - self.first)
    }

    /// Run trials until there is nothing more to be asked, or `go_on`, which is told the length of each sample first, fails.
    /// `room` is as long as the longest sample.
    pub(super) fn run(
        &self,
        encoder: &mut Encoder,
        room: &mut [u8],
        go_on: impl Fn(usize) -> Result<()>,
    ) -> Result<Outcome> {
        let mut board = self.lock();
        loop {
            match self.next(&board, encoder) {
                Next::Run { n, candidate } => {
                    board.trials[n][candidate] = Trial::Running;
                    drop(board);
                    let claim = Claim { trials: self, n, candidate };
                    let sample = self.samples[n];
                    go_on(sample.len())?;
                    let length = encoder.encode_at(candidate, sample, &mut room[..sample.len()]);
                    board = claim.settle(length.unwrap_or(sample.len()), room);
                }
                Next::Wait => board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner),
                Next::Over(outcome) => return Ok(outcome),
            }
        }
    }

    /// What a search made of an only sample that it leaves shorter.
    pub(super) fn into_kept(self, candidate: usize) -> Option<Vec<u8>> {
        let kept = self.board.into_inner().unwrap_or_else(PoisonError::into_inner).kept;
        kept.into_iter().nth(candidate).filter(|kept| (1..self.samples[0].len()).contains(&kept.len()))
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one thread alone would do next; if others are at it, what may come after that.
    fn next(&self, board: &Board, encoder: &Encoder) -> Next {
        let missing = match self.outcome(board, encoder) {
            Ok(outcome) => return Next::Over(outcome),
            Err(missing) => missing,
        };
        let is_open = |&(n, candidate): &(usize, usize)| board.trials[n][candidate] == Trial::Open;
        let behind = |&(n, candidate): &(usize, usize)| {
            let candidates = if candidate == self.last { self.first..self.last } else { candidate + 1..self.last };
            candidates.map(move |candidate| (n, candidate)).find(is_open)
        };
        let found = missing.iter().copied().find(is_open).or_else(|| missing.iter().find_map(behind));
        found.map_or(Next::Wait, |(n, candidate)| Next::Run { n, candidate })
    }

    /// What the trials came to, or else which are needed next, each a sample and a search.
    fn outcome(&self, board: &Board, encoder: &Encoder) -> Result<Outcome, Vec<(usize, usize)>> {
        let size = |(n, trials): (usize, &Vec<Trial>)| match trials[self.last] {
            Trial::Done(size) => Ok(size),
            Trial::Open | Trial::Running => Err((n, self.last)),
        };
        let sizes: Vec<usize> = all(board.trials.iter().enumerate().map(size))?;
        let paying = self.samples.iter().zip(&sizes).filter(|&(sample, &size)| pays(size, sample)).count().max(1);
        let spare = sizes.iter().sum::<usize>() / SPARE;
        let enough = spare / (paying * paying);
        let losses = |(n, &size): (usize, &usize)| {
            let sample = self.samples[n];
            let asked = self.first < self.last && pays(size, sample) && encoder.has_quicker(size, sample.len());
            if !asked {
                return Ok(Vec::new());
            }
            self.losses(&board.trials[n], size, (enough, spare), encoder.is_flat()).map_err(|candidate| (n, candidate))
        };
        let losses = all(sizes.iter().enumerate().map(losses))?;
        Ok(Outcome { sizes, losses, spare })
    }

    /// By how many bytes more than the last search, which leaves `size`, each of the others leaves of a sample, up to
    /// the first that leaves no more than `enough`. Where a quick one misses by far, and the last two do, for there are
    /// `spare` bytes for one, the others are not tried. Or else the search that is to be tried next.
    fn losses(
        &self,
        trials: &[Trial],
        size: usize,
        (enough, spare): (usize, usize),
        flat: bool,
    ) -> Result<Vec<usize>, usize> {
        let mut losses = vec![usize::MAX; self.last];
        let finest = self.last.saturating_sub(2).max(self.first)..self.last;
        let look = |losses: &mut [usize], candidate: usize| {
            let Trial::Done(length) = trials[candidate] else { return Err(candidate) };
            losses[candidate] = length.saturating_sub(size);
            Ok(losses[candidate])
        };
        for candidate in self.first..self.last {
            let loss = look(&mut losses, candidate)?;
            if loss <= enough {
                break;
            }
            if loss > size / FAR {
                let mut close = false;
                for candidate in finest.clone().filter(|_| !flat) {
                    close = look(&mut losses, candidate)? <= TOO_FAR * spare;
                    if close {
                        break;
                    }
                }
                if !close {
                    break;
                }
            }
        }
        Ok(losses)
    }
}

/// All results, or all errors.
fn all<T, E>(results: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, Vec<E>> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(result) => good.push(result),
            Err(error) => bad.push(error),
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}

/// A trial that a thread is at.
struct Claim<'t, 's> {
    trials: &'t Trials<'s>,
    n: usize,
    candidate: usize,
}

impl<'t> Claim<'t, '_> {
    /// Say what came of it: so many bytes at the start of `room`.
    fn settle(self, length: usize, room: &[u8]) -> MutexGuard<'t, Board> {
        let trials = self.trials;
        let mut board = trials.lock();
        if let Some(kept) = board.kept.get_mut(self.candidate) {
            *kept = room[..length].to_vec();
        }
        board.trials[self.n][self.candidate] = Trial::Done(length);
        trials.changed.notify_all();
        // There is nothing left to be given up.
        std::mem::forget(self);
        board
    }
}

impl Drop for Claim<'_, '_> {
    /// The thread gave the trial up, or panicked: nobody must wait for it.
    fn drop(&mut self) {
        self.trials.lock().trials[self.n][self.candidate] = Trial::Open;
        self.trials.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::Codec;
    use crate::testing::noise;

    /// Streams of several kinds, some of them noise.
    fn streams() -> Vec<Vec<u8>> {
        let of = |n: u8| match n % 4 {
            0 => noise(1 << 15, n.into()),
            1 => noise(1 << 15, n.into()).iter().map(|byte| byte & 15).collect(),
            2 => noise(1 << 13, n.into()).iter().flat_map(|byte| [byte & 3, *byte, 0, n]).collect(),
            _ => noise(1 << 15, n.into())
                .iter()
                .scan(0u8, |sum, byte| Some(std::mem::replace(sum, *sum ^ byte & 1)))
                .collect(),
        };
        (0..12).map(of).collect()
    }

    /// What the trials come to, and what is kept of the level's own search.
    fn outcome(samples: &[&[u8]], codec: Codec, nthreads: usize) -> (Outcome, Option<Vec<u8>>) {
        let last = Encoder::new(codec, 5, None).unwrap().candidates() - 1;
        let trials = Trials::new(samples, &vec![None; samples.len()], 0..=last);
        let run = || trials.run(&mut Encoder::new(codec, 5, None).unwrap(), &mut vec![0; 1 << 15], |_| Ok(())).unwrap();
        let outcome = std::thread::scope(|scope| {
            for _ in 1..nthreads {
                scope.spawn(run);
            }
            run()
        });
        (outcome, trials.into_kept(last))
    }

    #[test]
    fn trials_come_to_the_same_for_every_number_of_threads() {
        let streams = streams();
        let samples: Vec<&[u8]> = streams.iter().map(Vec::as_slice).collect();
        for codec in [Codec::Lz4Hc, Codec::Zlib, Codec::Zstd] {
            for samples in [&samples[..], &samples[1..2], &samples[2..3], &samples[3..4]] {
                let alone = outcome(samples, codec, 1);
                assert!(alone.0.losses.iter().any(|losses| !losses.is_empty()));
                for nthreads in [2, 5] {
                    assert_eq!(outcome(samples, codec, nthreads), alone);
                }
            }
        }
    }

    #[test]
    fn a_trial_that_came_to_nothing_is_open_again() {
        let samples: [&[u8]; 1] = [&[0; 100]];
        let trials = Trials::new(&samples, &[None], 0..=1);
        trials.lock().trials[0][1] = Trial::Running;
        drop(Claim { trials: &trials, n: 0, candidate: 1 });
        assert_eq!(trials.lock().trials[0], [Trial::Open, Trial::Open]);
    }
}
