//! Reading pieces of many chunks in one call, spread over threads.
//!
//! A job is a list of [`Request`]s, each a byte range of one chunk and the part of the destination that takes it. A few
//! requests are cut into blocks, which all threads share; many are handed out whole, so that chunks are
//! opened in parallel as well. Only blocks that a range intersects are decoded, straight into the destination
//! where all of a block is wanted.
//!
//! Source: docs/format/chunk.md, section "Partial reads".

use superchunk_engine::chunk::{Chunk, resize, with_worker};
use superchunk_engine::header::Body;
use superchunk_engine::interrupt::{Interrupt, go_on};
use superchunk_engine::pool;
use superchunk_engine::shape::BlockShape;
use superchunk_engine::source::Source;
use superchunk_engine::user::User;
use superchunk_engine::{Error, Result};

use crate::source::{ChunkLocation, MOST_OPEN};

/// Work on fewer uncompressed bytes than this is done before another thread has woken up.
pub(crate) const SERIAL: usize = 64 * 1024;
/// With this many requests for each thread, requests are handed out whole.
pub(crate) const REQUESTS_PER_THREAD: usize = 4;

/// A byte range of one chunk's content, and where it goes.
#[derive(Debug)]
pub struct Request<'a, 'd> {
    /// The chunk.
    pub location: ChunkLocation<'a>,
    /// What the chunk must decode to, in bytes, where that is known beforehand.
    pub nbytes: Option<u64>,
    /// First byte wanted; the destination's length says how many.
    pub start: u64,
    /// Where they go.
    pub dst: &'d mut [u8],
}

/// A failure, and the number of the request that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Number of the request, from 0.
    pub nrequest: usize,
    /// What went wrong.
    pub error: crate::Error,
}

impl ReadError {
    /// Give an error the number of its request.
    pub(crate) fn at<E: Into<crate::Error>>(nrequest: usize) -> impl Fn(E) -> Self {
        move |error| Self { nrequest, error: error.into() }
    }
}

/// Options of a read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'u> {
    /// Threads to use at most; 0 counts as 1.
    pub nthreads: usize,
    /// The container's item size in bytes, where known.
    pub itemsize: Option<usize>,
    /// The shape of the container's blocks, where it is one of arrays.
    pub shape: Option<BlockShape>,
    /// Codecs and filters that are not built in; they run on one thread.
    pub user: Option<&'u dyn User>,
    /// Whether the result is still wanted.
    pub interrupt: Option<&'u Interrupt<'u>>,
}

/// Execute all requests.
///
/// # Errors
///
/// The first failure, by request, among those that ran. Destinations may then hold anything.
pub fn read(requests: Vec<Request<'_, '_>>, options: ReadOptions<'_>) -> Result<(), ReadError> {
    let nthreads = if options.user.is_some() { 1 } else { options.nthreads.max(1) };
    let total: usize = requests.iter().map(|request| request.dst.len()).sum();
    let nthreads = if total <= SERIAL { 1 } else { nthreads };
    let named = requests.iter().any(|request| request.location.is_path());
    let at_once = if named { MOST_OPEN } else { usize::MAX };
    if nthreads == 1 || requests.len() / REQUESTS_PER_THREAD >= nthreads {
        // Each thread has one file open.
        return pool::run(nthreads.min(at_once), requests, |nrequest, request| {
            read_one(request, options).map_err(ReadError::at(nrequest))
        });
    }
    let mut requests = requests.into_iter().enumerate();
    loop {
        let group: Vec<_> = requests.by_ref().take(at_once).collect();
        if group.is_empty() {
            return Ok(());
        }
        read_group(group, nthreads, options)?;
    }
}

/// Execute requests, each with its number, their blocks shared by all threads.
fn read_group(
    group: Vec<(usize, Request<'_, '_>)>,
    nthreads: usize,
    options: ReadOptions<'_>,
) -> Result<(), ReadError> {
    let mut opened = Vec::with_capacity(group.len());
    for (nrequest, request) in &group {
        opened.push(request.location.open().map_err(ReadError::at(*nrequest))?);
    }
    let mut chunks = Vec::with_capacity(group.len());
    for ((nrequest, request), opened) in group.into_iter().zip(&opened) {
        let chunk = open(&request, opened.source(), options).map_err(ReadError::at(nrequest))?;
        chunks.push((nrequest, chunk, request.start, request.dst));
    }
    let mut tasks = Vec::new();
    for (nrequest, chunk, start, dst) in &mut chunks {
        let (nrequest, chunk) = (*nrequest, &*chunk);
        let pieces = chunk.cut(*start, std::mem::take(dst), |piece, dst| tasks.push((nrequest, chunk, piece, dst)));
        pieces.map_err(ReadError::at(nrequest))?;
    }
    pool::run(nthreads, tasks, |_, (nrequest, chunk, piece, dst)| {
        go_on(options.interrupt, dst.len())
            .and_then(|()| with_worker(|worker| chunk.read_piece(&piece, dst, worker, options.user)))
            .map_err(ReadError::at(nrequest))
    })
}

fn read_one(request: Request<'_, '_>, options: ReadOptions<'_>) -> crate::Result<()> {
    let opened = request.location.open()?;
    let chunk = open(&request, opened.source(), options)?;
    let Request { start, dst, .. } = request;
    Ok(with_worker(|worker| chunk.read_into(start, dst, worker, options.user, options.interrupt))?)
}

/// Open a request's chunk and hold its length against the expectation and the range.
fn open<'a>(request: &Request<'_, '_>, source: Source<'a>, options: ReadOptions<'_>) -> Result<Chunk<'a>> {
    let chunk = Chunk::open_with(source, options.itemsize, options.shape, options.user)?;
    expect(&chunk, request.nbytes, request.start, request.dst.len())?;
    Ok(chunk)
}

/// Hold a chunk's length against what the container says, if that is known, and against the range that is wanted.
///
/// # Errors
///
/// [`Error::Field`] for a chunk of another length than the container says, [`Error::Argument`] for a range that ends
/// behind the chunk.
pub fn expect(chunk: &Chunk<'_>, nbytes: Option<u64>, start: u64, length: usize) -> Result<()> {
    if let Some(expected) = nbytes {
        chunk.expect_nbytes(expected)?;
    }
    chunk.expect_range(start, length)
}

/// Return the blocks of a chunk with variable-length blocks.
///
/// # Errors
///
/// [`Error::Field`] for a chunk without them; otherwise as [`read`].
pub fn read_vlblocks(source: Source<'_>, options: ReadOptions<'_>) -> Result<Vec<Vec<u8>>> {
    let chunk = Chunk::open_with(source, options.itemsize, options.shape, options.user)?;
    if chunk.header.body() != Body::VlBlocks {
        return Err(Error::Field {
            field: "blosc2_flags2",
            at: 30,
            expected: "a chunk with variable-length blocks (bit 0 set)".into(),
            found: chunk.header.blosc2_flags2.into(),
        });
    }
    let mut blocks = Vec::with_capacity(chunk.nblocks);
    for len in chunk.vl_lengths()? {
        let mut block = Vec::new();
        resize(&mut block, len)?;
        blocks.push(block);
    }
    let nthreads = if options.user.is_some() { 1 } else { options.nthreads.max(1) };
    pool::run(nthreads, blocks.iter_mut().collect(), |nblock, block: &mut Vec<u8>| {
        go_on(options.interrupt, block.len())?;
        with_worker(|worker| chunk.decode_block(nblock, block, worker, options.user))
    })?;
    Ok(blocks)
}
