//! Whether a file still says what it said: bytes that show most changes, times that prove the rest.
//!
//! ```text
//! at each look     the times, the head's bytes          other bytes: changed
//! times moved      the proof as well                    equal: nothing that counts was changed
//! times are young  the proof as well, again and again   a write just now may leave them as they are
//! times was unchanged for some ticks of the clock, and the proof held after that: they alone count from now on
//! ```
//!
//! A file's times tell of every call that writes, once the clock has ticked. Whoever writes through a shared mapping to a
//! page that is dirty already moves no times; of that only what the head shows is noticed.
//!
//! Source: docs/format/cframe.md, section "Concurrency"; docs/durability.md.

use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::files::{self, Named, Stamp};
use crate::range::FileRange;
use crate::seal;
use crate::source::ChunkLocation;

/// A file's stamp must be unchanged for so long, where its clock ticks often, and where it counts seconds.
const STILL: Duration = Duration::from_millis(50);
const STILL_COARSE: Duration = Duration::from_secs(3);
/// Of a stamp that is older than this by the clock of this machine nothing more needs to be known.
const OLD: Duration = Duration::from_secs(60);
/// Most bytes of the head that are compared without waiting.
const AT_ONCE: usize = 512;

/// Bytes of a file that differ whenever what it says about itself does.
#[derive(Debug, Clone)]
pub enum Proof {
    /// These are at one offset.
    Bytes {
        /// Their position.
        at: u64,
        /// The bytes.
        bytes: [u8; 16],
    },
    /// This is the XXH3-128 of some ranges, one after the other.
    Hash {
        /// Position and length of each.
        ranges: Vec<(u64, u64)>,
        /// The hash, its low half first.
        bytes: [u8; 16],
    },
}

impl Proof {
    /// Whether the file has not those bytes.
    ///
    /// # Errors
    ///
    /// [`superchunk_engine::Error::Io`] when the system fails to read.
    pub fn differs(&self, file: &File) -> Result<bool> {
        match self {
            Self::Bytes { at, bytes } => Ok(files::differs(file, *at, bytes)?),
            Self::Hash { ranges, bytes } => {
                let location = |&(offset, limit): &(u64, u64)| ChunkLocation::File(FileRange { file, offset, limit });
                let locations: Vec<ChunkLocation<'_>> = ranges.iter().map(location).collect();
                Ok(match seal::hash128(&locations) {
                    Err(Error::Chunk(superchunk_engine::Error::Truncated { .. })) => true,
                    outcome => outcome?.to_le_bytes() != *bytes,
                })
            }
        }
    }
}

/// What a file is expected to be.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The open file.
    pub file: &'a File,
    /// The name that it must have; None: any.
    pub named: Option<Named<'a>>,
    /// Where the head is.
    pub at: u64,
    /// The head's bytes.
    pub head: &'a [u8],
    /// What differs whenever the rest does; None: the head tells all.
    pub proof: Option<&'a Proof>,
}

impl Expected<'_> {
    fn stamp(&self) -> Result<Option<Stamp>> {
        match &self.named {
            None => Ok(files::status(self.file, self.at)?),
            Some(named) => Ok(named.status(self.file)),
        }
    }

    /// Whether head or proof are others, whatever the times and the name.
    ///
    /// # Errors
    ///
    /// [`superchunk_engine::Error::Io`] when the system fails to read.
    pub fn differs(&self) -> Result<bool> {
        if files::differs(self.file, self.at, self.head)? {
            return Ok(true);
        }
        self.proof.map_or(Ok(false), |proof| proof.differs(self.file))
    }
}

/// What looks at one file have learnt about its times.
#[derive(Debug)]
pub struct Times {
    /// How long they must have been unchanged.
    still: Duration,
    seen: Mutex<Option<Seen>>,
    /// Whether they proved nothing at some look since this was asked last.
    doubted: AtomicBool,
}

impl Default for Times {
    fn default() -> Self {
        Self { still: STILL, seen: Mutex::new(None), doubted: AtomicBool::new(false) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    stamp: Stamp,
    /// When it was seen first.
    since: Instant,
    /// Whether what is written from now on gets another one.
    quiet: bool,
}

impl Times {
    /// Return the file's stamp, if the file is as expected; None if it is not.
    ///
    /// # Errors
    ///
    /// [`superchunk_engine::Error::Io`] when the system fails to read.
    pub fn look(&self, expected: &Expected<'_>) -> Result<Option<Stamp>> {
        // In this order: of what is written after the look at the stamp, the next look finds another.
        let Some(stamp) = expected.stamp()? else { return Ok(None) };
        if files::differs(expected.file, expected.at, expected.head)? {
            return Ok(None);
        }
        let Some(proof) = expected.proof else { return Ok(Some(stamp)) };
        if self.proves(stamp) {
            return Ok(Some(stamp));
        }
        let now = Instant::now();
        if proof.differs(expected.file)? {
            return Ok(None);
        }
        self.note(stamp, now);
        Ok(Some(stamp))
    }

    /// The same if that needs no waiting; None if bytes would have to come from a disk, or be hashed.
    #[must_use]
    pub fn look_at_once(&self, expected: &Expected<'_>) -> Option<Option<Stamp>> {
        let mut found = [0; AT_ONCE];
        let found = found.get_mut(..expected.head.len())?;
        let Some(stamp) = expected.stamp().ok()? else { return Some(None) };
        if !files::read_at_once(expected.file, expected.at, found) {
            return None;
        }
        if found != expected.head {
            return Some(None);
        }
        let Some(proof) = expected.proof else { return Some(Some(stamp)) };
        if self.proves(stamp) {
            return Some(Some(stamp));
        }
        let Proof::Bytes { at, bytes } = proof else { return None };
        let (now, mut there) = (Instant::now(), [0; 16]);
        if !files::read_at_once(expected.file, *at, &mut there) {
            return None;
        }
        if there != *bytes {
            return Some(None);
        }
        self.note(stamp, now);
        Some(Some(stamp))
    }

    /// Whether this stamp says by itself that nothing was written. Nobody waits: who finds this in use compares.
    fn proves(&self, stamp: Stamp) -> bool {
        self.seen.try_lock().is_ok_and(|seen| seen.is_some_and(|seen| seen.quiet && seen.stamp == stamp))
    }

    /// Whether bytes that the proof does not cover may have been written before some look since this was asked last.
    pub fn take_doubt(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// Remember that the proof held after `now`, when the file had this stamp.
    fn note(&self, stamp: Stamp, now: Instant) {
        self.doubted.store(true, Ordering::Relaxed);
        let Ok(mut seen) = self.seen.try_lock() else { return };
        let still = if stamp.is_coarse() { self.still.max(STILL_COARSE) } else { self.still };
        *seen = Some(match *seen {
            Some(known) if known.stamp == stamp => {
                Seen { quiet: known.quiet || now.duration_since(known.since) >= still, ..known }
            }
            _ => Seen { stamp, since: now, quiet: stamp.is_older_than(OLD) },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A file of 64 bytes: a head of 8, then what the proof is of. Removed at the end.
    struct OnDisk(PathBuf, File);

    const HEAD: [u8; 8] = [7; 8];

    impl OnDisk {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("superchunk-watch-{}-{name}", std::process::id()));
            std::fs::write(&path, [7; 64]).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            Self(path, file)
        }

        fn write(&self, at: u64, bytes: &[u8]) {
            use std::io::{Seek, SeekFrom, Write};
            let mut file = &self.1;
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(bytes).unwrap();
        }

        fn expected<'a>(&'a self, proof: &'a Proof) -> Expected<'a> {
            Expected { file: &self.1, named: None, at: 0, head: &HEAD, proof: Some(proof) }
        }
    }

    impl Drop for OnDisk {
        fn drop(&mut self) {
            drop(std::fs::remove_file(&self.0));
        }
    }

    fn proofs() -> [Proof; 2] {
        let hash = seal::hash128(&[ChunkLocation::Bytes(&[7; 24])]).unwrap().to_le_bytes();
        [Proof::Bytes { at: 48, bytes: [7; 16] }, Proof::Hash { ranges: vec![(40, 8), (48, 16)], bytes: hash }]
    }

    #[test]
    fn the_proof_counts_until_the_times_have_stood_still() {
        for (n, proof) in proofs().iter().enumerate() {
            let disk = OnDisk::new(&format!("still-{n}"));
            let expected = disk.expected(proof);
            let patient = Times { still: Duration::MAX, ..Times::default() };
            let stamp = patient.look(&expected).unwrap();
            assert!(stamp.is_some());
            assert_eq!(patient.look_at_once(&expected), (n == 0).then_some(stamp).or(None));
            let stamp = stamp.unwrap();
            assert!(!patient.proves(stamp), "it may be written to in the same tick");
            let hasty = Times { still: Duration::ZERO, ..Times::default() };
            hasty.look(&expected).unwrap();
            assert!(!hasty.proves(stamp), "the first look begins the time");
            hasty.look(&expected).unwrap();
            assert!(hasty.take_doubt() && hasty.proves(stamp) && !hasty.take_doubt());
            hasty.look(&expected).unwrap();
            assert!(!hasty.take_doubt(), "the times prove it");
            disk.write(50, b"other");
            assert_eq!(patient.look(&expected), Ok(None));
            assert_eq!(expected.differs(), Ok(true));
            disk.write(50, &[7; 5]);
            assert!(patient.look(&expected).unwrap().is_some(), "the same bytes again");
            disk.write(0, b"h");
            assert_eq!(patient.look(&expected), Ok(None));
            assert_eq!(patient.look_at_once(&expected).flatten(), None);
            assert_eq!(expected.differs(), Ok(true));
        }
    }

    #[test]
    fn another_stamp_begins_anew_and_a_coarse_one_takes_longer() {
        let proof = &proofs()[0];
        let disk = OnDisk::new("anew");
        let hasty = Times { still: Duration::ZERO, ..Times::default() };
        let first = hasty.look(&disk.expected(proof)).unwrap().unwrap();
        hasty.look(&disk.expected(proof)).unwrap();
        disk.write(64, b"longer");
        let second = hasty.look(&disk.expected(proof)).unwrap().unwrap();
        assert!(first != second && !hasty.proves(first) && !hasty.proves(second));
        let guard = hasty.seen.lock().unwrap();
        assert!(hasty.look(&disk.expected(proof)).unwrap().is_some(), "nobody waits");
        drop(guard);
        disk.1.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(4_000_000_000)).unwrap();
        let future = hasty.look(&disk.expected(proof)).unwrap().unwrap();
        assert!(!future.is_older_than(OLD));
    }

    #[test]
    fn a_proof_beyond_the_file_differs_and_so_does_a_file_without_a_name() {
        let disk = OnDisk::new("short");
        let bytes = [7; 16];
        for proof in [Proof::Bytes { at: 60, bytes }, Proof::Hash { ranges: vec![(60, 8)], bytes }] {
            assert_eq!(proof.differs(&disk.1), Ok(true));
        }
        let proof = &proofs()[0];
        assert!(Times::default().look(&disk.expected(proof)).unwrap().is_some());
        #[cfg(unix)]
        {
            std::fs::remove_file(&disk.0).unwrap();
            assert_eq!(Times::default().look(&disk.expected(proof)), Ok(None));
            assert_eq!(disk.expected(proof).differs(), Ok(false));
        }
    }
}
