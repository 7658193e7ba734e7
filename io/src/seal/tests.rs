use super::*;
use std::fs::File;
use std::path::PathBuf;

use crate::range::FileRange;

use superchunk_engine::encode::{self, MAX_OVERHEAD};
use superchunk_engine::params::{EncodeOptions, EncodeParams};

/// A file that is removed at the end.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("superchunk-seal-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn location(&self, offset: u64, limit: u64) -> ChunkLocation<'_> {
        ChunkLocation::Path { path: &self.0, folder: None, offset, limit }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// A chunk of `length` uncompressed bytes that does not compress.
fn chunk(length: usize) -> Vec<u8> {
    let options = EncodeOptions {
        codec: 1,
        codec_meta: 0,
        clevel: 0,
        typesize: 1,
        blocksize: 0,
        splitmode: 1,
        filters: [0; 6],
        filters_meta: [0; 6],
        blosc1: false,
        shape: None,
        use_dict: false,
        nthreads: 1,
    };
    let params = EncodeParams::new(options, None).unwrap();
    let mut chunk = vec![0; length + MAX_OVERHEAD];
    let cbytes = encode::encode(&pattern(length), &params, None, None, &mut chunk).unwrap();
    chunk.truncate(cbytes);
    chunk
}

fn sealed(length: usize) -> (Vec<u8>, usize) {
    let mut bytes = chunk(length);
    let cbytes = bytes.len();
    let seal = seal(&bytes).unwrap();
    bytes.extend(seal);
    (bytes, cbytes)
}

/// The status of `bytes` as a buffer, in a file that is open and in one that is named, which must agree.
fn status_of(name: &str, bytes: &[u8], limit: u64) -> Status {
    let buffer = &bytes[..bytes.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let at = 7;
    let named = TestFile::new(name, &[&pattern(at), bytes].concat());
    let file = File::open(&named.0).unwrap();
    let locations = [
        ChunkLocation::Bytes(buffer),
        ChunkLocation::File(FileRange { file: &file, offset: at as u64, limit }),
        named.location(at as u64, limit),
    ];
    let verdicts = check_all(&locations, 2, None).unwrap();
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
    verdicts[0].status
}

/// Sizes around the change from one read to several.
const LENGTHS: [usize; 5] = [1, 1000, PIECE - SEAL_LENGTH - 32, PIECE, 2 * PIECE + 999];

#[test]
fn hashes_are_those_of_the_specification() {
    assert_eq!(hash64(&[]), Ok(0x2d06_8005_38d3_94c2));
    assert_eq!(hash128(&[]), Ok(0x99aa_06d3_0147_98d8_6001_c324_468d_497f));
    let one = |bytes| [ChunkLocation::Bytes(bytes)];
    assert_eq!(hash64(&one(b"")), Ok(0x2d06_8005_38d3_94c2));
    assert_eq!(hash128(&one(b"")), Ok(0x99aa_06d3_0147_98d8_6001_c324_468d_497f));
}

#[test]
fn parts_hash_like_the_whole_wherever_they_are() {
    let content = pattern(2 * PIECE + 4321);
    let whole = [ChunkLocation::Bytes(&content)];
    let file = TestFile::new("parts", &content);
    for cut in [0, 1, 63, 240, 241, 1024, PIECE, PIECE + 1, content.len()] {
        let parts = [ChunkLocation::Bytes(&content[..cut]), file.location(cut as u64, (content.len() - cut) as u64)];
        assert_eq!(hash64(&parts), hash64(&whole), "{cut}");
        assert_eq!(hash128(&parts), hash128(&whole), "{cut}");
    }
    let open = File::open(&file.0).unwrap();
    let limit = content.len() as u64;
    assert_eq!(hash64(&[ChunkLocation::File(FileRange { file: &open, offset: 0, limit })]), hash64(&whole));
}

#[test]
fn a_file_with_fewer_bytes_than_the_hash_needs_is_an_error() {
    let file = TestFile::new("short", &pattern(1000));
    for (offset, limit, got) in [(0, 1001, 1000), (990, 11, 10), (5000, 1, 0), (0, u64::MAX, 1000)] {
        let expected = crate::Error::from(Error::Truncated { what: "bytes to hash", at: 0, needed: limit, got });
        assert_eq!(hash64(&[file.location(offset, limit)]), Err(expected.clone()));
        assert_eq!(hash128(&[file.location(offset, limit)]), Err(expected));
    }
    assert!(matches!(hash64(&[file.location(u64::MAX, u64::MAX)]), Err(crate::Error::Chunk(Error::Io { .. }))));
    assert!(matches!(
        hash64(&[file.location(i64::MAX as u64, 2)]),
        Err(crate::Error::Chunk(Error::Io { .. } | Error::Truncated { .. }))
    ));
}

#[test]
fn a_seal_proves_its_chunk() {
    for length in LENGTHS {
        let (bytes, cbytes) = sealed(length);
        assert_eq!(bytes[cbytes..cbytes + 8], MAGIC);
        assert_eq!(seal(&bytes).unwrap(), bytes[cbytes..], "bytes behind the chunk do not count");
        for limit in [bytes.len() as u64, bytes.len() as u64 + 1, u64::MAX] {
            assert_eq!(status_of("sound", &bytes, limit), Status::Sound, "{length}");
        }
        for at in [32, cbytes - 1, cbytes + 8, cbytes + 15] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(status_of("differs", &damaged, u64::MAX), Status::Differs, "{length}, byte {at}");
        }
    }
}

#[test]
fn what_is_no_seal_is_none() {
    for length in LENGTHS {
        let (bytes, cbytes) = sealed(length);
        for behind in 0..SEAL_LENGTH {
            assert_eq!(status_of("none", &bytes[..cbytes + behind], u64::MAX), Status::NotSealed, "{length}");
            assert_eq!(status_of("none", &bytes, (cbytes + behind) as u64), Status::NotSealed, "{length}");
        }
        for at in cbytes..cbytes + 8 {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(status_of("none", &other, u64::MAX), Status::NotSealed, "{length}");
        }
    }
}

#[test]
fn a_chunk_beyond_its_bytes_is_told_from_one_that_is_unreadable() {
    for length in LENGTHS {
        let (bytes, cbytes) = sealed(length);
        assert_eq!(status_of("beyond", &bytes[..cbytes - 1], u64::MAX), Status::Beyond, "{length}");
        assert_eq!(status_of("beyond", &bytes, cbytes as u64 - 1), Status::Beyond, "{length}");
        assert_eq!(status_of("beyond", &bytes[..32], u64::MAX), Status::Beyond, "{length}");
        for short in [0, 15, 31] {
            assert_eq!(status_of("unreadable", &bytes[..short], u64::MAX), Status::Unreadable, "{length}");
        }
        let mut damaged = bytes.clone();
        damaged[3] = 0;
        assert_eq!(status_of("unreadable", &damaged, u64::MAX), Status::Unreadable, "{length}");
    }
    // The largest claim there can be, of a file with nothing behind it.
    let mut claim = sealed(1000).0;
    claim[4..8].copy_from_slice(&(i32::MAX - 32).to_le_bytes());
    claim[12..16].copy_from_slice(&i32::MAX.to_le_bytes());
    assert_eq!(status_of("claim", &claim, u64::MAX), Status::Beyond);
}

#[test]
fn places_that_cannot_be_are_unreadable() {
    let file = TestFile::new("offsets", &sealed(1000).0);
    let missing = file.0.with_extension("missing");
    let folder = std::env::temp_dir();
    let locations = [
        ChunkLocation::Path { path: &missing, folder: None, offset: 0, limit: u64::MAX },
        ChunkLocation::Path { path: &folder, folder: None, offset: 0, limit: u64::MAX },
        file.location(u64::MAX, u64::MAX),
        file.location(i64::MAX as u64, u64::MAX),
        file.location(1 << 40, 100),
        file.location(0, 0),
    ];
    for nthreads in [0, 1, 3] {
        let verdicts = check_all(&locations, nthreads, None).unwrap();
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::UNREADABLE));
    }
}

#[test]
fn threads_agree() {
    let bytes: Vec<Vec<u8>> = (0..40).map(|n| sealed(n * 7001).0).collect();
    let damaged: Vec<Vec<u8>> = bytes
        .iter()
        .enumerate()
        .map(|(n, sound)| {
            let mut bytes = sound.clone();
            match n % 5 {
                0 => bytes.truncate(sound.len() - 1),
                1 => bytes.truncate(20),
                2 => *bytes.last_mut().unwrap() ^= 1,
                3 => bytes[0] = 99,
                _ => {}
            }
            bytes
        })
        .collect();
    let locations: Vec<ChunkLocation<'_>> = damaged.iter().map(|bytes| ChunkLocation::Bytes(bytes)).collect();
    let one = check_all(&locations, 1, None).unwrap();
    assert!(one.iter().any(|verdict| verdict.status == Status::Differs));
    for nthreads in [2, 3, 100] {
        assert_eq!(check_all(&locations, nthreads, None).unwrap(), one);
    }
}

/// What `check_all` says of the chunks of a run, each by itself.
fn one_by_one(file: &File, base: u64, entries: &[i64], extent: u64) -> Vec<Verdict> {
    let begins = entries.iter().map(|entry| entry.unsigned_abs());
    let ends = begins.clone().skip(1).chain([extent]);
    let locations: Vec<ChunkLocation<'_>> = begins
        .zip(ends)
        .map(|(from, to)| ChunkLocation::File(FileRange { file, offset: base + from, limit: to - from }))
        .collect();
    check_all(&locations, 1, None).unwrap()
}

/// Sealed chunks one behind the other, and where they begin.
fn chain(lengths: &[usize]) -> (Vec<u8>, Vec<i64>) {
    let mut content = Vec::new();
    let mut entries = Vec::new();
    for &length in lengths {
        entries.push(i64::try_from(content.len()).unwrap());
        content.extend(sealed(length).0);
    }
    (content, entries)
}

/// Small ones, many to a piece, around one that is as large as a piece and one that is larger.
const CHAIN: [usize; 13] =
    [1, 4000, 100_000, 100_000, 60_000, PIECE - 48, PIECE - 47, 7, 2 * PIECE + 999, 9, 5000, 5000, 70_000];

#[test]
fn a_run_is_sound_and_says_sizes() {
    let (content, entries) = chain(&CHAIN);
    let file = TestFile::new("run-sound", &[&pattern(77)[..], &content].concat());
    let open = File::open(&file.0).unwrap();
    for nthreads in [0, 1, 2, 5] {
        let found = check_run(&open, 77, &entries, content.len() as u64, nthreads, None).unwrap();
        assert!(found.iter().all(|verdict| verdict.status == Status::Sound), "{found:?}");
        assert!(found.iter().zip(CHAIN).all(|(verdict, length)| verdict.nbytes as usize == length));
        assert_eq!(found, one_by_one(&open, 77, &entries, content.len() as u64));
    }
    assert_eq!(check_run(&open, 77, &[], 0, 1, None), Ok(Vec::new()));
}

#[test]
fn a_run_says_what_is_said_of_each_chunk() {
    let (sound, entries) = chain(&CHAIN);
    let extent = sound.len() as u64;
    let mut seen = std::collections::HashSet::new();
    let mut compare = |name: &str, content: &[u8], entries: &[i64], extent: u64| {
        let file = TestFile::new("run-damaged", &[&pattern(77)[..], content].concat());
        let open = File::open(&file.0).unwrap();
        let expected = one_by_one(&open, 77, entries, extent);
        for nthreads in [1, 3] {
            assert_eq!(check_run(&open, 77, entries, extent, nthreads, None).unwrap(), expected, "{name}");
        }
        seen.extend(expected.iter().map(|verdict| verdict.status as u8));
    };
    for (nchunk, &entry) in entries.iter().enumerate() {
        let begin = usize::try_from(entry).unwrap();
        let end = entries.get(nchunk + 1).map_or(sound.len(), |&next| usize::try_from(next).unwrap());
        for at in [begin, begin + 3, begin + 12, begin + 14, begin + 15, begin + 32, end - 16, end - 1] {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x41;
            compare("damaged", &damaged, &entries, extent);
        }
        // The file ends too early, or the extent does.
        for cut in [begin, begin + 1, begin + 31, begin + 32, end - 17, end - 16, end - 1] {
            compare("cut", &sound[..cut], &entries, extent);
            compare("limited", &sound, &entries[..=nchunk], cut as u64);
        }
        // An entry in the middle of a chunk, and chunks that are left out.
        let mut more = entries.clone();
        more.insert(nchunk + 1, entry + 1);
        compare("within", &sound, &more, extent);
        more.drain(nchunk..=nchunk + 1);
        compare("without", &sound, &more, extent);
    }
    assert_eq!(seen.len(), 5);
}

#[test]
fn a_run_ascends_within_its_room() {
    let (content, entries) = chain(&[100, 200, 300]);
    let file = TestFile::new("run-order", &content);
    let open = File::open(&file.0).unwrap();
    let extent = content.len() as u64;
    let refused = |entries: &[i64], nrequest: usize| {
        let failure = check_run(&open, 0, entries, extent, 1, None).unwrap_err();
        assert!(matches!(failure.error, crate::Error::Chunk(Error::Argument { name: "entries", .. })), "{failure:?}");
        assert_eq!(failure.nrequest, nrequest);
    };
    refused(&[entries[1], entries[0]], 1);
    refused(&[entries[1], entries[1], entries[2]], 1);
    refused(&[-1, entries[1]], 0);
    refused(&[i64::MIN], 0);
    refused(&[entries[0], entries[1], extent.cast_signed() + 1], 2);
    refused(&[i64::MAX], 0);
    assert_eq!(check_run(&open, 0, &[extent.cast_signed()], extent, 1, None), Ok(vec![Verdict::UNREADABLE]));
    // Offsets that no file has are no failure of the process.
    for base in [u64::MAX, i64::MAX as u64, 1 << 40] {
        let found = check_run(&open, base, &entries, extent, 2, None).unwrap();
        assert_eq!(found, vec![Verdict::UNREADABLE; 3]);
    }
    assert_eq!(check_run(&open, 0, &[i64::MAX - 1, i64::MAX], u64::MAX, 1, None), Ok(vec![Verdict::UNREADABLE; 2]));
}
