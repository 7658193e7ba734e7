//! Boxes of n-dimensional arrays.
//!
//! ```text
//! picks ─ plan ─> tiles: what the selection takes of one block, and its box of the destination
//! chunk ─ content ─> bytes of that block, decoded into scratch space that stays in cache
//! tile  <─ copy ─ its rows, collected from there
//! ```
//!
//! [`read_box`] reads a selection of an array, [`read_points`] items at any positions, [`pack`] makes the chunk of a
//! part of an array in memory. Only blocks that hold selected items are read, and of those no more than the
//! part of chunks can be decoded on its own. Where chunks are, which of them a selection meets and what an array is
//! are the caller's matters.
//!
//! Source: docs/format/b2nd.md, sections "Geometry" and "Reading a box".

mod content;
mod copy;
mod geometry;
mod pack;
mod plan;
mod points;
mod scatter;

use crate::read::{REQUESTS_PER_THREAD, ReadError, ReadOptions};
use crate::source::{ChunkLocation, MOST_OPEN};
use superchunk_engine::chunk::{Chunk, Worker, resize, with_worker};
use superchunk_engine::interrupt::{Interrupt, go_on};
use superchunk_engine::pool;
use superchunk_engine::{Error, Result};

use content::Content;
use plan::Plan;
use scatter::{Scatter, Strip, Tile, TileRange};

pub use geometry::{Geometry, MAX_DIMS};
pub use pack::{Strided, pack};
pub use plan::Pick;
pub use points::read_points;

/// Blocks of fewer uncompressed bytes than this in all are read before another thread has woken up.
const SERIAL: usize = if cfg!(any(test, fuzzing)) { 1 } else { SERIAL_BOX };
const SERIAL_BOX: usize = 512 * 1024;
/// Uncompressed bytes of blocks that one thread works off at a time.
const TURN: usize = if cfg!(any(test, fuzzing)) { 512 } else { 128 * 1024 };

/// A failure, and the number of the source that it belongs to, if it belongs to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxError {
    /// Number of the source, from 0.
    pub nsource: Option<usize>,
    /// What went wrong.
    pub error: crate::Error,
}

impl From<Error> for BoxError {
    fn from(error: Error) -> Self {
        Self { nsource: None, error: error.into() }
    }
}

impl From<ReadError> for BoxError {
    fn from(failure: ReadError) -> Self {
        Self { nsource: Some(failure.nrequest), error: failure.error }
    }
}

/// Read the items that `picks` selects in each dimension into `dst`, in C order.
///
/// `locations` are the chunks that the selection intersects, in C order: the product over the dimensions of the distinct
/// chunk coordinates of the selected positions. `options.itemsize` is the geometry's, whatever it says.
///
/// # Errors
///
/// [`Error::Argument`] for a selection that is out of range or for another number of locations,
/// [`Error::Destination`] for a destination of another size, and the first failure, by source, among those of the
/// chunks that were read: `dst` may then hold anything.
pub fn read_box(
    geometry: &Geometry,
    picks: &[Pick<'_>],
    locations: &[ChunkLocation<'_>],
    dst: &mut [u8],
    options: ReadOptions<'_>,
) -> Result<(), BoxError> {
    let plan = Plan::new(geometry, picks, locations.len(), dst.len())?;
    if dst.is_empty() {
        return Ok(());
    }
    let needed = dst.len() as u64;
    let scatter = Scatter::new(dst, &plan).ok_or(Error::Destination { needed, got: needed })?;
    let all = plan.all_tiles().saturating_mul(geometry.block_nbytes());
    let nthreads = if options.user.is_some() || all <= SERIAL { 1 } else { options.nthreads.max(1) };
    if by_chunk(nthreads, locations.len()) {
        let at_once = nthreads.min(MOST_OPEN);
        return Ok(pool::run(at_once, scatter.split(|_| usize::MAX), |_, mut range| {
            let nrequest = range.nchunk();
            read_chunk(geometry, &locations[nrequest], &mut range, options).map_err(ReadError::at(nrequest))
        })?);
    }
    let turn = (TURN / geometry.block_nbytes().max(1)).max(1);
    let mut ranges = scatter.split(|_| turn).into_iter().peekable();
    let mut first = 0;
    while first < locations.len() {
        let end = (first + MOST_OPEN).min(locations.len());
        let mut tasks = Vec::new();
        while let Some(range) = ranges.next_if(|range| range.nchunk() < end) {
            tasks.push(range);
        }
        let numbers: Vec<usize> = (first..end).collect();
        with_opened(geometry, &numbers, locations, options, |contents| {
            pool::run(nthreads, tasks, |_, mut range| {
                let nrequest = range.nchunk();
                let content = &contents[nrequest - first];
                with_worker(|worker| read_tiles(content, &mut range, worker, options.interrupt))
                    .map_err(ReadError::at(nrequest))
            })
        })?;
        first = end;
    }
    Ok(())
}

/// Read a selection of one chunk by one thread, and return the chunk, which `open` gives; None if that is too much for one.
pub(crate) fn read_small_box<'a>(
    geometry: &Geometry,
    picks: &[Pick<'_>],
    dst: &mut [u8],
    open: impl FnOnce() -> Result<Chunk<'a>>,
) -> Result<Option<Chunk<'a>>> {
    let plan = Plan::new(geometry, picks, 1, dst.len())?;
    let parallel = plan.all_tiles().saturating_mul(geometry.block_nbytes()) > SERIAL_BOX;
    if parallel || dst.is_empty() {
        return Ok(None);
    }
    let needed = dst.len() as u64;
    let scatter = Scatter::new(dst, &plan).ok_or(Error::Destination { needed, got: needed })?;
    let content = Content::of(open()?, geometry, ReadOptions::default())?;
    for mut range in scatter.split(|_| usize::MAX) {
        with_worker(|worker| read_tiles(&content, &mut range, worker, None))?;
    }
    Ok(Some(content.into_chunk()))
}

/// Whether chunks are handed out whole, so that they are opened in parallel as well.
fn by_chunk(nthreads: usize, nchunks: usize) -> bool {
    nthreads == 1 || nchunks / REQUESTS_PER_THREAD >= nthreads
}

/// Open the chunks of these numbers for as long as `work` takes.
fn with_opened(
    geometry: &Geometry,
    numbers: &[usize],
    locations: &[ChunkLocation<'_>],
    options: ReadOptions<'_>,
    work: impl FnOnce(&[Content<'_>]) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut opened = Vec::with_capacity(numbers.len());
    for &nrequest in numbers {
        opened.push(locations[nrequest].open().map_err(ReadError::at(nrequest))?);
    }
    let mut contents = Vec::with_capacity(numbers.len());
    for (&nrequest, opened) in numbers.iter().zip(&opened) {
        let content = Content::open(opened.source(), geometry, options);
        contents.push(content.map_err(ReadError::at(nrequest))?);
    }
    work(&contents)
}

fn read_chunk(
    geometry: &Geometry,
    location: &ChunkLocation<'_>,
    range: &mut TileRange<'_, '_>,
    options: ReadOptions<'_>,
) -> crate::Result<()> {
    let opened = location.open()?;
    let content = Content::open(opened.source(), geometry, options)?;
    Ok(with_worker(|worker| read_tiles(&content, range, worker, options.interrupt))?)
}

fn read_tiles(
    content: &Content<'_>,
    range: &mut TileRange<'_, '_>,
    worker: &mut Worker,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<()> {
    let mut scratch = std::mem::take(&mut worker.decoded);
    let mut outcome = Ok(());
    while outcome.is_ok() {
        let most = range.side_by_side();
        let Some(mut tile) = range.next_tile() else { break };
        outcome = go_on(interrupt, tile.bytes.len());
        if outcome.is_err() {
            break;
        }
        let together = content.together(tile.row(), most);
        outcome = if !tile.is_run() && content.has_planes_for(&tile) {
            content.join(&mut tile, &mut scratch, worker)
        } else if together > 1 {
            read_band(content, tile, together, range, &mut scratch, worker)
        } else {
            read_tile(content, &mut tile, &mut scratch, worker)
        };
    }
    worker.decoded = scratch;
    outcome
}

/// Read a tile and those beside it.
fn read_band<'d, 'p>(
    content: &Content<'_>,
    first: Tile<'d, 'p>,
    count: usize,
    range: &mut TileRange<'d, 'p>,
    scratch: &mut Vec<u8>,
    worker: &mut Worker,
) -> Result<()> {
    let scratch = resize(scratch, count * content.block_nbytes())?;
    let tiles = std::iter::once(first).chain(std::iter::from_fn(|| range.next_tile()));
    let mut band = Vec::with_capacity(count);
    // No tile is taken that there is no room for.
    for (scratch, tile) in scratch.chunks_exact_mut(content.block_nbytes()).zip(tiles) {
        let block = content.bytes_of_block(tile.nblock, tile.bytes.clone(), scratch, worker)?;
        band.push((tile, block));
    }
    Tile::fill_together(&mut band)
}

fn read_tile(content: &Content<'_>, tile: &mut Tile<'_, '_>, scratch: &mut Vec<u8>, worker: &mut Worker) -> Result<()> {
    if let Some(item) = content.item() {
        tile.repeat(item);
        return Ok(());
    }
    if tile.is_run() {
        let (nblock, from) = (tile.nblock, tile.bytes.start);
        let mut strip = tile.rows.next_strip();
        let row = strip.as_mut().and_then(Strip::next_row);
        return row.map_or(Ok(()), |row| content.write(nblock, from, row, worker));
    }
    let block = content.bytes(tile.nblock, tile.bytes.clone(), scratch, worker)?;
    tile.fill(block)
}

#[cfg(test)]
pub(crate) mod tests;
