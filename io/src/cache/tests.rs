use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::*;
use crate::boxes::read_box;
use crate::boxes::tests::{compress, options};
use crate::files;
use crate::read::{ReadOptions, Request, read};
use crate::source::ChunkLocation;
use superchunk_engine::codecs::Codec;

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
        files::status(&self.file, 0).unwrap().unwrap()
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(bytes).unwrap();
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// One that keeps blocks however long they take.
fn eager() -> Cache {
    Cache { always: true, ..Cache::default() }
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
        let cache = eager();
        let mut found = 0;
        for round in 0..400_u64 {
            let (start, length) = (round * 997 * 13 % 399_000, 1 + usize::try_from(round).unwrap() * 37 % 1000);
            // At other offsets, at neighbours, and across the ends of blocks.
            for start in [start, start, start + 4, 32 * 1024 - 2] {
                let wanted = disk.wanted(start, length);
                let mut decoded = vec![0; length];
                let range = FileRange { file: &disk.file, offset: wanted.offset, limit: wanted.limit };
                let request = Request { location: ChunkLocation::File(range), nbytes: None, start, dst: &mut decoded };
                read(vec![request], ReadOptions { itemsize: Some(4), ..ReadOptions::default() }).unwrap();
                if let Some(kept) = cache.find(&wanted) {
                    assert!(cache.confirms(&kept, &disk.file, disk.stamp()));
                    assert_eq!(*kept, decoded[..]);
                    found += 1;
                }
                assert_eq!(take(&cache, &disk, start, length), decoded);
            }
        }
        assert_eq!(found > 100, name != "delta", "{name}: {found}");
        let retained = cache.retained.lock().unwrap();
        assert!(retained.nbytes + retained.heads.nbytes <= limit());
    }
}

/// Two chunks of one length, whose first blocks are stored at the same offset or not.
fn two_chunks(filters: [u8; 6]) -> [Vec<u8>; 2] {
    let chunks = [items(1), items(2)].map(|content| chunk_of(&content, filters));
    let length = chunks[0].len().max(chunks[1].len());
    chunks.map(|mut chunk| {
        chunk.resize(length, 0);
        chunk
    })
}

#[test]
fn what_is_kept_counts_only_while_its_bytes_stand_in_the_file_whatever_the_times_say() {
    for (n, filters) in [[0, 0, 0, 0, 0, 1], [0; 6], [0, 0, 0, 0, 3, 1]].into_iter().enumerate() {
        let [first, second] = two_chunks(filters);
        let disk = OnDisk::new(&format!("write-{n}"), &first);
        // The stamp of a file whose times a writer has left as they were.
        let (cache, stamp) = (eager(), disk.stamp());
        let read = |cache: &Cache| {
            let mut dst = [0; 40];
            cache.read(&disk.file, &disk.wanted(40_000, 40), stamp, &mut dst).unwrap();
            dst.to_vec()
        };
        for _ in 0..3 {
            assert_eq!(read(&cache), items(1)[40_000..40_040]);
        }
        let old = cache.find(&disk.wanted(40_000, 40));
        assert_eq!(old.is_some(), n < 2, "chunks that need their first block are opened each time");
        for chunk in [&second, &first, &second] {
            disk.put(HEAD.len() as u64, chunk);
            let content = items(if chunk == &first { 1 } else { 2 });
            if let Some(old) = &old {
                assert_eq!(cache.confirms(old, &disk.file, stamp), chunk == &first);
            }
            for _ in 0..3 {
                assert_eq!(read(&cache), content[40_000..40_040]);
            }
        }
    }
}

#[test]
fn each_stored_byte_that_a_block_is_decoded_from_counts() {
    for (n, filters) in [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 3, 1]].into_iter().enumerate() {
        let [chunk, _] = two_chunks(filters);
        let disk = OnDisk::new(&format!("bytes-{n}"), &chunk);
        let range = FileRange { file: &disk.file, offset: HEAD.len() as u64, limit: disk.length };
        let open = || Chunk::open_with(range.source(), Some(4), None, None).unwrap();
        let hash = |nblock| with_worker(|worker| open().hash_own(nblock, worker)).unwrap();
        let before: Vec<u128> = (0..4).map(hash).collect();
        let (mut moved, mut all) = (0, 0);
        for at in (open().header.len() + 4 * open().nblocks..chunk.len()).step_by(97) {
            disk.put((HEAD.len() + at) as u64, &[chunk[at] ^ 1]);
            let after: Vec<u128> = (0..4).map(hash).collect();
            let others = before.iter().zip(&after).filter(|(before, after)| before != after).count();
            moved += usize::from(others > 0);
            all += usize::from(others == 4);
            disk.put((HEAD.len() + at) as u64, &[chunk[at]]);
        }
        assert!(moved > 0 && (all > 0) == (n == 1), "the first block counts for all where they are compared with it");
    }
}

#[test]
fn under_a_lasting_stamp_nothing_is_hashed_again() {
    let [first, second] = two_chunks([0, 0, 0, 0, 0, 1]);
    let disk = OnDisk::new("lasting", &first);
    let cache = eager();
    cache.written_back.set(true).unwrap();
    disk.file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let stamp = disk.stamp();
    for _ in 0..3 {
        take(&cache, &disk, 40_000, 40);
    }
    let found = cache.find(&disk.wanted(40_000, 40)).unwrap();
    assert_eq!(found.lasting, None, "its status was changed just now");
    let lasting = stamp.of_long_ago();
    assert!(lasting.is_lasting(true) && !lasting.is_lasting(false) && !stamp.is_lasting(true));
    assert!(cache.confirms(&found, &disk.file, lasting));
    let found = cache.find(&disk.wanted(40_000, 40)).unwrap();
    assert_eq!(found.lasting, Some(lasting));
    disk.put(HEAD.len() as u64, &second);
    assert!(cache.confirms(&found, &disk.file, lasting), "this stamp could not have stayed");
    assert!(!cache.confirms(&found, &disk.file, disk.stamp()));
}

#[test]
fn blocks_that_are_decoded_at_once_are_not_kept_and_nobody_waits() {
    let disk = OnDisk::new("decoded", &chunk_of(&items(1), [0; 6]));
    let wanted = disk.wanted(40_000, 40);
    let mut retained = Retained::default();
    assert!(!retained.note_seen(wanted.key(), 3, false));
    assert!(retained.note_seen(wanted.key(), 3, false));
    retained.refuse(wanted.key());
    assert!(!retained.note_seen(wanted.key(), 3, false));
    assert!(retained.note_seen(wanted.key(), 3, true), "hashing is not needed then");
    let busy = eager();
    let guard = busy.retained.lock().unwrap();
    for _ in 0..3 {
        assert_eq!(take(&busy, &disk, 40_000, 40), items(1)[40_000..40_040]);
    }
    assert!(busy.find(&wanted).is_none());
    drop(guard);
    assert!(busy.find(&wanted).is_none());
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut retained = Retained::default();
    let key = Key { offset: 0, limit: 0, itemsize: None };
    let many = limit() / 1024 + 3;
    for nblock in 0..many {
        let decoded = Arc::new(vec![0; 1024]);
        retained.keep_block(Block { key, nblock, decoded, stored: 0, lasting: None, pays: true });
        assert!(retained.block(key, 0).is_some());
    }
    assert!(retained.nbytes <= limit());
    assert!(retained.block(key, 1).is_none());
    assert!(retained.block(key, many - 1).is_some());
}

#[test]
fn boxes_agree_with_the_plain_way() {
    let content = items(1);
    for (name, filters) in
        [("shuffled-box", [0, 0, 0, 0, 0, 1]), ("decoded-box", [0; 6]), ("delta-box", [0, 0, 0, 0, 3, 1])]
    {
        let disk = OnDisk::new(name, &chunk_of(&content, filters));
        let location = (HEAD.len() as u64, disk.length);
        // Blocks of 32 KiB are 64 x 128 items, of which 14 hold 100,000; chunks are as large as whole blocks.
        let whole = chunk_of(&[&content[..], &vec![0; 13 * 32 * 1024 - NBYTES]].concat(), filters);
        let fitting = OnDisk::new(&format!("{name}-fitting"), &whole);
        let geometry = Geometry::new(&[13 * 64, 128], &[64, 128], 4).unwrap();
        let cache = eager();
        for round in 0..300_i64 {
            let (top, left) = (round * 37 % (13 * 64 - 20), round * 11 % 118);
            let (high, wide) = (1 + round % 20, 1 + round % 10);
            let step = 1 + round % 3;
            let rows = Pick::Range { start: top, stop: top + high, step };
            let picks = [rows, Pick::Range { start: left, stop: left + wide, step: 1 }];
            let count = usize::try_from((high + step - 1) / step * wide).unwrap();
            let (mut decoded, mut found) = (vec![1; 4 * count], vec![2; 4 * count]);
            let range = FileRange { file: &fitting.file, offset: location.0, limit: fitting.length };
            let options = ReadOptions { itemsize: Some(4), ..ReadOptions::default() };
            read_box(&geometry, &picks, &[ChunkLocation::File(range)], &mut decoded, options).unwrap();
            let location = (location.0, fitting.length);
            assert!(cache.read_box(&fitting.file, location, &geometry, &picks, &mut found).unwrap());
            assert_eq!(found, decoded);
        }
        assert_eq!(cache.retained.lock().unwrap().heads.chunks.is_empty(), name == "delta-box");
        // A chunk of another length is an error.
        let picks = [0, 1].map(|_| Pick::Range { start: 0, stop: 1, step: 1 });
        let mut dst = [0; 4];
        assert!(cache.read_box(&disk.file, location, &geometry, &picks, &mut dst).is_err());
    }
}

#[test]
fn heads_that_were_not_used_for_long_go_first() {
    let disk = OnDisk::new("heads", &chunk_of(&items(1), [0, 0, 0, 0, 0, 1]));
    let head = || {
        let range = FileRange { file: &disk.file, offset: HEAD.len() as u64, limit: disk.length };
        Arc::new(Chunk::open_with(range.source(), Some(4), None, None).unwrap().keep().unwrap())
    };
    let key = |offset| Key { offset, limit: 0, itemsize: None };
    let mut retained = Retained::default();
    let many = (limit() / CHUNKS_PART / head().footprint()).min(MOST_CHUNKS) as u64 + 3;
    for offset in 0..many {
        retained.keep_chunk(key(offset), head());
        assert!(retained.heads.get(key(0)).is_some());
    }
    assert!(retained.heads.nbytes <= limit() / CHUNKS_PART && retained.heads.chunks.len() <= MOST_CHUNKS);
    assert!(retained.heads.get(key(1)).is_none());
    assert!(retained.heads.get(key(many - 1)).is_some());
    let before = retained.heads.nbytes;
    retained.keep_chunk(key(0), head());
    assert_eq!(retained.heads.nbytes, before);
}
