//! Comparing the many chunks of one file with their seals, in the order in which they lie there.
//!
//! ```text
//! base                                                            base + extent
//! |  chunk, seal | chunk, seal | chunk, seal, dead bytes | chunk, seal |
//!    ^ entry       ^ entry       ^ entry                   ^ entry
//!    \____ one read: a piece ___/  \____ the next one ____/
//! ```
//!
//! Small chunks are read by the dozen, so that the system is not asked for each of them. Each ends
//! at the next one at the latest; what is said of it is what [`super::check_all`] says of those
//! bytes. Takes no more memory than that.
//!
//! Source: docs/format/integrity.md, section "Chunk seal".

use std::fs::File;

use super::{PIECE, SERIAL, Verdict, check, with_piece};
use crate::error::Result;
use crate::range::FileRange;
use crate::read::ReadError;
use crate::source::ChunkLocation;
use superchunk_engine::Error;
use superchunk_engine::interrupt::{Interrupt, go_on};
use superchunk_engine::pool;
use superchunk_engine::source::ReadAt as _;

/// Neighbours that one read brings, or one chunk of any size.
struct Span<'r> {
    /// Number of the first chunk.
    first: usize,
    /// Where they begin, counted from the base.
    entries: &'r [i64],
    /// Where the last one ends at the latest.
    end: u64,
    verdicts: &'r mut [Verdict],
}

/// Compare the chunks of one file with the seals behind them.
///
/// Each chunk begins at `base` plus its entry, and reaches to the next entry at most, the last one to `extent`.
///
/// # Errors
///
/// [`Error::Argument`] when entries do not ascend, are negative or above `extent`; otherwise as [`super::check_all`].
pub fn check_run(
    file: &File,
    base: u64,
    entries: &[i64],
    extent: u64,
    nthreads: usize,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<Verdict>, ReadError> {
    check_entries(entries, extent)?;
    let mut verdicts = vec![Verdict::UNREADABLE; entries.len()];
    let bytes = entries.first().map_or(0, |&first| extent - first.cast_unsigned());
    let nthreads = if bytes <= SERIAL { 1 } else { nthreads.max(1) };
    pool::run(nthreads, cut(entries, extent, &mut verdicts), |_, span| {
        go_on(interrupt, PIECE).map_err(ReadError::at(span.first))?;
        span.check(file, base)
    })?;
    Ok(verdicts)
}

fn check_entries(entries: &[i64], extent: u64) -> Result<(), ReadError> {
    let mut least = 0;
    for (nrequest, &entry) in entries.iter().enumerate() {
        if entry < least || entry.cast_unsigned() > extent {
            let expected = format!("ascending ones up to {extent}, at least {least} as number {nrequest}").into();
            return Err(ReadError {
                nrequest,
                error: Error::Argument { name: "entries", expected, found: entry }.into(),
            });
        }
        least = entry.saturating_add(1);
    }
    Ok(())
}

/// Cut checked entries into spans that fit into a piece, chunks that do not being spans by themselves.
fn cut<'r>(mut entries: &'r [i64], extent: u64, mut verdicts: &'r mut [Verdict]) -> Vec<Span<'r>> {
    let mut spans = Vec::new();
    let mut first = 0;
    while let Some(&begin) = entries.first() {
        let most = begin.cast_unsigned().saturating_add(PIECE as u64);
        let end_of = |n: usize| entries.get(n + 1).map_or(extent, |next| next.cast_unsigned());
        let mut count = 1;
        while count < entries.len() && end_of(count) <= most {
            count += 1;
        }
        let end = end_of(count - 1);
        let (here, behind) = entries.split_at(count);
        let (found, rest) = verdicts.split_at_mut(count);
        spans.push(Span { first, entries: here, end, verdicts: found });
        (entries, verdicts) = (behind, rest);
        first += count;
    }
    spans
}

impl Span<'_> {
    fn check(self, file: &File, base: u64) -> Result<(), ReadError> {
        let begin = self.entries.first().map_or(self.end, |entry| entry.cast_unsigned());
        let ends = self.entries.iter().skip(1).map(|next| next.cast_unsigned()).chain([self.end]);
        let locations = self.entries.iter().map(|entry| entry.cast_unsigned()).zip(ends);
        let range = |from: u64, to: u64| FileRange { file, offset: base.saturating_add(from), limit: to - from };
        let length = usize::try_from(self.end - begin).unwrap_or(usize::MAX);
        if length <= PIECE {
            let whole = with_piece(|piece| {
                let got = range(begin, self.end).read_some(0, &mut piece[..length])?;
                let location = |at: u64| usize::try_from(at - begin).unwrap_or(got).min(got);
                for ((from, to), verdict) in locations.clone().zip(&mut *self.verdicts) {
                    *verdict = check(&ChunkLocation::Bytes(&piece[location(from)..location(to)]))?;
                }
                Ok(())
            });
            if whole.is_ok() {
                return Ok(());
            }
        }
        // A large chunk, or bytes that cannot be read, which may be those of one chunk only.
        for (n, ((from, to), verdict)) in locations.zip(self.verdicts).enumerate() {
            *verdict = check(&ChunkLocation::File(range(from, to))).map_err(ReadError::at(self.first + n))?;
        }
        Ok(())
    }
}
