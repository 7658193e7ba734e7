//! Boxes and points of any chunk, against its content read whole.

use super::{FILLINGS, LARGEST_WHOLE, read_twice};
use crate::boxes::{Geometry, Pick, read_box, read_points};
use crate::read::ReadOptions;
use crate::source::ChunkLocation;
use superchunk_engine::header::Header;
use superchunk_engine::lazy;
use superchunk_engine::source::Source;

/// Any box of any bytes holds the items of the whole, where there is a whole. So does any list of points.
///
/// The first 16 bytes of `data` choose shapes that fit to the chunk and what to read, the others are the chunk.
pub fn boxes(data: &[u8]) {
    let Some((way, chunk)) = data.split_first_chunk::<16>() else { return };
    let Ok(header) = lazy::describe(Source::Bytes(chunk)) else { return };
    let nbytes = header.nbytes as usize;
    if nbytes == 0 || nbytes > LARGEST_WHOLE {
        return;
    }
    let Some((geometry, extended)) = shapes(&header, way) else { return };
    assert_eq!(geometry.chunk_nbytes(), nbytes, "shapes were made to fit");
    let whole = read_twice(chunk, 0, nbytes, 1).ok();
    let options = |nthreads| ReadOptions { nthreads, itemsize: Some(geometry.itemsize()), ..ReadOptions::default() };
    let locations = [ChunkLocation::Bytes(chunk)];

    let positions: Vec<Vec<i64>> = (0..2).map(|i| pick(&way[5 * i + 2..5 * i + 7], geometry.chunks()[i])).collect();
    let picks = [0, 1].map(|i| if way[5 * i + 2] < 200 { range(&positions[i]) } else { Pick::List(&positions[i]) });
    let length = positions[0].len() * positions[1].len() * geometry.itemsize();
    let met_locations = if length == 0 { &[][..] } else { &locations[..] };
    let numbers: Vec<usize> = positions[0]
        .iter()
        .flat_map(|&y| positions[1].iter().map(move |&x| (y, x)))
        .map(|at| number(&extended, at))
        .collect();
    let outcomes = [(FILLINGS[0], 1), (FILLINGS[1], 2)].map(|(filling, nthreads)| {
        let mut dst = vec![filling; length];
        read_box(&geometry, &picks, met_locations, &mut dst, options(nthreads)).ok().map(|()| dst)
    });
    check(&outcomes, whole.as_deref(), &numbers, geometry.itemsize());

    // The same items one by one, the last first.
    let sources = vec![0; numbers.len()];
    let backward: Vec<usize> = numbers.iter().rev().copied().collect();
    let positions: Vec<i64> = backward.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
    let outcomes = [(FILLINGS[0], 1), (FILLINGS[1], 2)].map(|(filling, nthreads)| {
        let mut dst = vec![filling; length];
        read_points(&geometry, &locations, &sources, &positions, &mut dst, options(nthreads)).ok().map(|()| dst)
    });
    check(&outcomes, whole.as_deref(), &backward, geometry.itemsize());
}

fn check(outcomes: &[Option<Vec<u8>>; 2], whole: Option<&[u8]>, numbers: &[usize], itemsize: usize) {
    assert_eq!(outcomes[0], outcomes[1], "a byte of the destination was not written, or threads read something else");
    let Some(whole) = whole else { return };
    let expected: Vec<u8> = numbers.iter().flat_map(|n| &whole[n * itemsize..(n + 1) * itemsize]).copied().collect();
    assert_eq!(outcomes[0].as_ref(), Some(&expected), "items are not those of the whole chunk");
}

/// Blocks and their grid in two dimensions.
type Extended = [[usize; 2]; 2];

/// Two-dimensional shapes of a chunk of that length, with its own blocks where that can be.
fn shapes(header: &Header, way: &[u8; 16]) -> Option<(Geometry, Extended)> {
    let (nbytes, blocksize) = (header.nbytes as usize, header.blocksize as usize);
    let itemsize = usize::from(header.typesize);
    let itemsize = if nbytes.is_multiple_of(itemsize) { itemsize } else { 1 };
    let fits = blocksize.is_multiple_of(itemsize) && nbytes.is_multiple_of(blocksize) && way[0] < 240;
    let block = if fits { blocksize } else { nbytes };
    let blocks = cut(block / itemsize, way[0]);
    let grid = cut(nbytes / block, way[1]);
    let chunks = [0, 1].map(|i| blocks[i] * grid[i] - usize::from(way[12 + i]) % blocks[i]);
    // Blocks are no larger than chunks.
    if chunks[0] < blocks[0] || chunks[1] < blocks[1] {
        return None;
    }
    let long = |shape: [usize; 2]| shape.map(|n| i64::try_from(n).unwrap_or(0));
    let geometry = Geometry::new(&long(chunks), &long(blocks), itemsize).ok()?;
    Some((geometry, [blocks, grid]))
}

/// Two factors of a number.
fn cut(number: usize, pick: u8) -> [usize; 2] {
    let first = (1..=usize::from(pick % 32) + 1).rev().find(|n| number.is_multiple_of(*n)).unwrap_or(1);
    [first, number / first]
}

/// At most 64 positions below `end`.
fn pick(way: &[u8], end: usize) -> Vec<i64> {
    let start = (usize::from(way[1]) * 256 + usize::from(way[2])) % end;
    let step = usize::from(way[3] % 64) + 1;
    let count = usize::from(way[4] % 65);
    (start..end).step_by(step).take(count).filter_map(|n| i64::try_from(n).ok()).collect()
}

fn range(positions: &[i64]) -> Pick<'static> {
    let by = if let [first, second, ..] = positions { second - first } else { 1 };
    let (start, stop) = (positions.first().map_or(0, |n| *n), positions.last().map_or(0, |n| *n + 1));
    Pick::Range { start, stop, step: by }
}

/// Item number in the chunk's content.
fn number([blocks, grid]: &Extended, (y, x): (i64, i64)) -> usize {
    let [y, x] = [y, x].map(|n| usize::try_from(n).unwrap_or(0));
    let block = (y / blocks[0]) * grid[1] + x / blocks[1];
    block * blocks[0] * blocks[1] + (y % blocks[0]) * blocks[1] + x % blocks[1]
}
