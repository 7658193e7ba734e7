use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::*;
use crate::boxes::read_box;
use crate::boxes::tests::{compress, options};
use crate::codecs::Codec;
use crate::files;
use crate::read::{ReadOptions, Request, read};

const NBYTES: usize = 400_000;
const HEAD: &[u8] = b"before the chunk";

/// Items that compress, and that differ from block to block.
fn items(seed: u32) -> Vec<u8> {
    (0..100_000_u32).flat_map(|n| (n / 7 + seed).wrapping_mul(n % 5 + 1).to_le_bytes()).collect()
}

fn chunk_of(content: &[u8], filters: [u8; 6]) -> Vec<u8> {
    compress(content, options(Codec::Zstd, 4, 32 * 1024, filters))
}

/// A file with a chunk behind some other bytes, removed at the end.
struct OnDisk {
    path: PathBuf,
    file: File,
    length: u64,
}

impl OnDisk {
    fn new(name: &str, chunk: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("superchunk-cache-{}-{name}", std::process::id()));
        std::fs::write(&path, [HEAD, chunk].concat()).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, file, length: chunk.len() as u64 }
    }

    fn wanted(&self, start: u64, length: usize) -> Wanted {
        let (offset, nbytes) = (HEAD.len() as u64, NBYTES as u64);
        Wanted { offset, limit: self.length, nbytes, start, length, itemsize: Some(4) }
    }

    fn stamp(&self) -> Stamp {
        files::unchanged_since(&self.file, 0, HEAD).unwrap().unwrap()
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// One that does not wait for the file to stand still.
fn hasty() -> Cache {
    Cache { still: Duration::ZERO, ..Cache::default() }
}

fn take(cache: &Cache, disk: &OnDisk, start: u64, length: usize) -> Vec<u8> {
    let mut dst = vec![0; length];
    cache.read(&disk.file, &disk.wanted(start, length), disk.stamp(), &mut dst).unwrap();
    dst
}

#[test]
fn reads_agree_with_the_plain_way_and_with_what_is_found() {
    let content = items(1);
    for (name, filters) in [("shuffle", [0, 0, 0, 0, 0, 1]), ("none", [0; 6]), ("delta", [0, 0, 0, 0, 3, 1])] {
        let disk = OnDisk::new(name, &chunk_of(&content, filters));
        let cache = hasty();
        let mut found = 0;
        for round in 0..400_u64 {
            let (start, length) = (round * 997 * 13 % 399_000, 1 + usize::try_from(round).unwrap() * 37 % 1000);
            // At other places, at neighbours, and across the ends of blocks.
            for start in [start, start, start + 4, 32 * 1024 - 2] {
                let wanted = disk.wanted(start, length);
                let mut plain = vec![0; length];
                let source = Source::File { file: &disk.file, offset: wanted.offset, limit: wanted.limit };
                let request = Request { place: source.into(), nbytes: None, start, dst: &mut plain };
                read(vec![request], ReadOptions { itemsize: Some(4), ..ReadOptions::default() }).unwrap();
                if let Some(kept) = cache.find(&wanted) {
                    assert!(kept.is_of(disk.stamp()));
                    assert_eq!(*kept, plain[..]);
                    found += 1;
                }
                assert_eq!(take(&cache, &disk, start, length), plain);
            }
        }
        assert_eq!(found > 100, name != "delta", "{name}: {found}");
        let kept = cache.kept.lock().unwrap();
        assert!(kept.nbytes + kept.heads.nbytes <= limit());
    }
}

#[test]
fn nothing_is_kept_over_a_write() {
    let chunks = [items(1), items(2)].map(|content| chunk_of(&content, [0, 0, 0, 0, 0, 1]));
    let length = chunks[0].len().max(chunks[1].len());
    let [first, second] = chunks.map(|mut chunk| {
        chunk.resize(length, 0);
        chunk
    });
    let disk = OnDisk::new("write", &first);
    let cache = hasty();
    for _ in 0..3 {
        assert_eq!(take(&cache, &disk, 40_000, 40), items(1)[40_000..40_040]);
    }
    let old = cache.find(&disk.wanted(40_000, 40)).unwrap();
    // As long after the first look as two ticks of a clock.
    std::thread::sleep(STILL);
    let mut file = &disk.file;
    file.seek(SeekFrom::Start(HEAD.len() as u64)).unwrap();
    file.write_all(&second).unwrap();
    assert!(!old.is_of(disk.stamp()));
    assert_eq!(take(&cache, &disk, 40_000, 40), items(2)[40_000..40_040]);
    assert!(cache.find(&disk.wanted(40_000, 40)).is_none());
}

#[test]
fn nothing_is_kept_of_what_was_written_just_now_or_by_who_goes_without() {
    let disk = OnDisk::new("new", &chunk_of(&items(1), [0; 6]));
    let wanted = disk.wanted(40_000, 40);
    let patient = Cache { still: Duration::from_secs(1 << 20), ..Cache::default() };
    let busy = hasty();
    let guard = busy.kept.lock().unwrap();
    for cache in [&patient, &busy] {
        for _ in 0..3 {
            assert_eq!(take(cache, &disk, 40_000, 40), items(1)[40_000..40_040]);
        }
        assert!(cache.find(&wanted).is_none());
    }
    drop(guard);
    assert!(busy.find(&wanted).is_none());
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut kept = Kept::default();
    let key = Key { offset: 0, limit: 0, itemsize: None };
    let many = limit() / 1024 + 3;
    for nblock in 0..many {
        kept.keep_block(key, nblock, Arc::new(vec![0; 1024]));
        assert!(kept.block(key, 0).is_some());
    }
    assert!(kept.nbytes <= limit());
    assert!(kept.block(key, 1).is_none());
    assert!(kept.block(key, many - 1).is_some());
}

#[test]
fn boxes_agree_with_the_plain_way() {
    let content = items(1);
    for (name, filters) in
        [("shuffled-box", [0, 0, 0, 0, 0, 1]), ("plain-box", [0; 6]), ("delta-box", [0, 0, 0, 0, 3, 1])]
    {
        let disk = OnDisk::new(name, &chunk_of(&content, filters));
        let place = (HEAD.len() as u64, disk.length);
        // Blocks of 32 KiB are 64 x 128 items, of which 14 hold 100,000; chunks are as large as whole blocks.
        let whole = chunk_of(&[&content[..], &vec![0; 13 * 32 * 1024 - NBYTES]].concat(), filters);
        let fitting = OnDisk::new(&format!("{name}-fitting"), &whole);
        let geometry = Geometry::new(&[13 * 64, 128], &[64, 128], 4).unwrap();
        let cache = hasty();
        for round in 0..300_i64 {
            let (top, left) = (round * 37 % (13 * 64 - 20), round * 11 % 118);
            let (high, wide) = (1 + round % 20, 1 + round % 10);
            let step = 1 + round % 3;
            let rows = Pick::Range { start: top, stop: top + high, step };
            let picks = [rows, Pick::Range { start: left, stop: left + wide, step: 1 }];
            let count = usize::try_from((high + step - 1) / step * wide).unwrap();
            let (mut plain, mut found) = (vec![1; 4 * count], vec![2; 4 * count]);
            let source = Source::File { file: &fitting.file, offset: place.0, limit: fitting.length };
            let options = ReadOptions { itemsize: Some(4), ..ReadOptions::default() };
            read_box(&geometry, &picks, &[source.into()], &mut plain, options).unwrap();
            let place = (place.0, fitting.length);
            assert!(cache.read_box(&fitting.file, place, &geometry, &picks, fitting.stamp(), &mut found).unwrap());
            assert_eq!(found, plain);
        }
        assert_eq!(cache.kept.lock().unwrap().heads.chunks.is_empty(), name == "delta-box");
        // A chunk of another length is an error.
        let picks = [0, 1].map(|_| Pick::Range { start: 0, stop: 1, step: 1 });
        let mut dst = [0; 4];
        assert!(cache.read_box(&disk.file, place, &geometry, &picks, disk.stamp(), &mut dst).is_err());
    }
}

#[test]
fn heads_that_were_not_used_for_long_go_first() {
    let disk = OnDisk::new("heads", &chunk_of(&items(1), [0, 0, 0, 0, 0, 1]));
    let head = || {
        let source = Source::File { file: &disk.file, offset: HEAD.len() as u64, limit: disk.length };
        Arc::new(Chunk::open(source, Some(4), None, None).unwrap().keep().unwrap())
    };
    let key = |offset| Key { offset, limit: 0, itemsize: None };
    let mut kept = Kept::default();
    let many = (limit() / CHUNKS_PART / head().footprint()).min(MOST_CHUNKS) as u64 + 3;
    for offset in 0..many {
        kept.keep_chunk(key(offset), head());
        assert!(kept.heads.get(key(0)).is_some());
    }
    assert!(kept.heads.nbytes <= limit() / CHUNKS_PART && kept.heads.chunks.len() <= MOST_CHUNKS);
    assert!(kept.heads.get(key(1)).is_none());
    assert!(kept.heads.get(key(many - 1)).is_some());
    let before = kept.heads.nbytes;
    kept.keep_chunk(key(0), head());
    assert_eq!(kept.heads.nbytes, before);
}
