//! Items at any positions.

use std::ops::Range;

use super::content::Content;
use super::geometry::{Geometry, signed};
use super::{BoxError, SERIAL, by_chunk, with_opened};
use crate::read::{ReadError, ReadOptions};
use crate::source::{ChunkLocation, MOST_OPEN};
use superchunk_engine::chunk::{Worker, resize, with_worker};
use superchunk_engine::interrupt::{Interrupt, go_on};
use superchunk_engine::pool;
use superchunk_engine::{Error, Result};

/// A wanted item.
#[derive(Debug, Clone, Copy)]
struct Point {
    nsource: usize,
    /// Item number in the chunk.
    position: usize,
    /// Where it goes, in items.
    to: usize,
}

/// Points of one chunk, in ascending order, and room for their items.
type Run<'p, 'd> = (&'p [Point], &'d mut [u8]);

/// Read items one by one: item `k` of `dst` is item `positions[k]` of the chunk `locations[nsources[k]]`.
///
/// A position counts the items of the chunk's content: those of block 0, then those of block 1, and so on.
/// They may come in any order and more than once. `options.itemsize` is the geometry's, whatever it says.
///
/// # Errors
///
/// [`Error::Argument`] for a number or position out of range or lists of different lengths,
/// [`Error::Destination`] for a destination of another size, and the first failure, by source, among those of the
/// chunks that were read: `dst` may then hold anything.
pub fn read_points(
    geometry: &Geometry,
    locations: &[ChunkLocation<'_>],
    nsources: &[i64],
    positions: &[i64],
    dst: &mut [u8],
    options: ReadOptions<'_>,
) -> Result<(), BoxError> {
    let itemsize = geometry.itemsize();
    if nsources.len() != positions.len() {
        let expected = format!("{} numbers, one for each source number", nsources.len()).into();
        return Err(Error::Argument { name: "position", expected, found: signed(positions.len()) }.into());
    }
    let needed = positions.len().saturating_mul(itemsize);
    if needed != dst.len() {
        return Err(Error::Destination { needed: needed as u64, got: dst.len() as u64 }.into());
    }
    let mut points = checked(geometry, locations.len(), nsources, positions)?;
    if points.is_sorted_by_key(|point| (point.nsource, point.position)) {
        return Ok(read_sorted(geometry, locations, &points, dst, options)?);
    }
    points.sort_unstable_by_key(|point| (point.nsource, point.position));
    let mut sorted = Vec::new();
    let sorted = resize(&mut sorted, needed)?;
    read_sorted(geometry, locations, &points, sorted, options)?;
    for (point, item) in points.iter().zip(sorted.chunks_exact(itemsize)) {
        dst[point.to * itemsize..(point.to + 1) * itemsize].copy_from_slice(item);
    }
    Ok(())
}

fn checked(geometry: &Geometry, nplaces: usize, nsources: &[i64], positions: &[i64]) -> Result<Vec<Point>> {
    let items = geometry.chunk_nbytes() / geometry.itemsize();
    let within = |name, number: i64, end: usize| {
        usize::try_from(number).ok().filter(|&number| number < end).ok_or_else(|| Error::Argument {
            name,
            expected: format!("at least 0 and below {end}").into(),
            found: number,
        })
    };
    let mut points = Vec::new();
    points
        .try_reserve_exact(positions.len())
        .map_err(|_| Error::OutOfMemory { needed: positions.len().saturating_mul(size_of::<Point>()) as u64 })?;
    for (to, (&nsource, &position)) in nsources.iter().zip(positions).enumerate() {
        let nsource = within("nsource", nsource, nplaces)?;
        points.push(Point { nsource, position: within("position", position, items)?, to });
    }
    Ok(points)
}

/// Read points in ascending order.
fn read_sorted(
    geometry: &Geometry,
    locations: &[ChunkLocation<'_>],
    points: &[Point],
    dst: &mut [u8],
    options: ReadOptions<'_>,
) -> Result<(), ReadError> {
    let itemsize = geometry.itemsize();
    let chunks = cut(points, dst, itemsize, |one, other| one.nsource == other.nsource);
    let parallel = points.len().saturating_mul(geometry.block_nbytes()) > SERIAL;
    let nthreads = if options.user.is_some() || !parallel { 1 } else { options.nthreads.max(1) };
    if by_chunk(nthreads, chunks.len()) {
        return pool::run(nthreads.min(MOST_OPEN), chunks, |_, (points, dst)| {
            let nrequest = points[0].nsource;
            let mut read = || -> crate::Result<()> {
                let opened = locations[nrequest].open()?;
                let content = Content::open(opened.source(), geometry, options)?;
                Ok(with_worker(|worker| read_run(geometry, &content, points, dst, worker, options.interrupt))?)
            };
            read().map_err(ReadError::at(nrequest))
        });
    }
    let items = geometry.block_nbytes() / itemsize;
    let mut chunks = chunks.into_iter();
    loop {
        let group: Vec<Run<'_, '_>> = chunks.by_ref().take(MOST_OPEN).collect();
        if group.is_empty() {
            return Ok(());
        }
        let intersected: Vec<usize> = group.iter().map(|(points, _)| points[0].nsource).collect();
        with_opened(geometry, &intersected, locations, options, |contents| {
            let mut tasks = Vec::new();
            for ((points, dst), content) in group.into_iter().zip(contents) {
                let blocks = cut(points, dst, itemsize, |one, other| one.position / items == other.position / items);
                tasks.extend(blocks.into_iter().map(|run| (content, run)));
            }
            pool::run(nthreads, tasks, |_, (content, (points, dst))| {
                with_worker(|worker| read_run(geometry, content, points, dst, worker, options.interrupt))
                    .map_err(ReadError::at(points[0].nsource))
            })
        })?;
    }
}

/// Cut points where two neighbours are not the `same`.
fn cut<'p, 'd>(
    points: &'p [Point],
    mut dst: &'d mut [u8],
    itemsize: usize,
    same: impl Fn(&Point, &Point) -> bool,
) -> Vec<Run<'p, 'd>> {
    let mut runs = Vec::new();
    for run in points.chunk_by(same) {
        let (here, rest) = dst.split_at_mut(run.len() * itemsize);
        dst = rest;
        runs.push((run, here));
    }
    runs
}

/// Read ascending points of one chunk.
fn read_run(
    geometry: &Geometry,
    content: &Content<'_>,
    points: &[Point],
    dst: &mut [u8],
    worker: &mut Worker,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<()> {
    let itemsize = geometry.itemsize();
    let items = geometry.block_nbytes() / itemsize;
    let mut scratch = std::mem::take(&mut worker.decoded);
    let outcome = cut(points, dst, itemsize, |one, other| one.position / items == other.position / items)
        .into_iter()
        .try_for_each(|(points, dst)| {
            go_on(interrupt, geometry.block_nbytes())?;
            let (first, last) = (points[0].position, points[points.len() - 1].position);
            let (nblock, start) = (first / items, first % items * itemsize);
            let wanted: Range<usize> = start..start + (last - first + 1) * itemsize;
            if let [_] = points {
                return content.write(nblock, start, dst, worker);
            }
            let bytes = content.bytes(nblock, wanted, &mut scratch, worker)?;
            for (point, item) in points.iter().zip(dst.chunks_exact_mut(itemsize)) {
                let at = (point.position - first) * itemsize;
                item.copy_from_slice(&bytes[at..at + itemsize]);
            }
            Ok(())
        });
    worker.decoded = scratch;
    outcome
}
