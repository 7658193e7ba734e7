//! Writing chunks.
//!
//! Blocks are compressed by all threads into buffers of their own and put down in index order, so a chunk's
//! bytes do not depend on the number of threads. As soon as a chunk would not be smaller than its data,
//! the data are stored uncompressed instead. The input is only ever read.
//!
//! Source: docs/format/chunk.md, sections "Blocks and streams", "Dictionaries", "Special values" and
//! "Variable-length blocks".

mod pilot;
mod proof;
mod special;
mod vlblocks;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::chunk::{KEEP, MAX_DICT, resize};
use crate::codecs::{Codec, CodecFormat, Encoder, PreparedDict, ndlz, train_dictionary};
use crate::cpu::Isa;
use crate::error::{Error, Result};
use crate::filters::{self, Scratch};
use crate::header::{
    FLAG_BITSHUFFLE, FLAG_DELTA, FLAG_DONT_SPLIT, FLAG_EXTENDED, FLAG_MEMCPYED, FLAG_SHUFFLE, FLAG2_USEDICT, Header,
    Special, VERSION_BLOSC1, VERSION_STABLE,
};
use crate::interrupt::{Interrupt, go_on};
use crate::limits::{EXTENDED_HEADER_LENGTH, MAX_BUFFERSIZE};
use crate::params::{Compressor, EncodeOptions, EncodeParams, stored_typesize};
use crate::pool;
use crate::user::User;

use pilot::{Plan, Quicker};
use proof::Prover;

pub use special::{special_chunk, zeros_in_blocks};
pub use vlblocks::encode_vlblocks;

/// Most bytes by which a chunk is longer than its data.
pub const MAX_OVERHEAD: usize = EXTENDED_HEADER_LENGTH;
/// Less than this is stored uncompressed without a try.
const MIN_BUFFERSIZE: usize = 32;
/// Smallest useful dictionary, in bytes.
const MIN_DICT: usize = 256;
/// Work on fewer bytes than this is done before another thread has woken up.
const SERIAL: usize = 64 * 1024;

/// What one thread keeps between blocks.
#[derive(Default)]
struct Worker {
    /// A block that is not contiguous in memory.
    block: Vec<u8>,
    filters: Scratch,
    output: Vec<u8>,
    encoder: Option<Encoder>,
    prover: Prover,
}

impl Worker {
    /// Let go of scratch space that only an unusually large block needed.
    fn trim(&mut self) {
        self.filters.trim(KEEP);
        for buffer in [&mut self.block, &mut self.output] {
            if buffer.capacity() > KEEP {
                *buffer = Vec::new();
            }
        }
    }
}

thread_local! {
    static WORKER: Cell<Option<Box<Worker>>> = const { Cell::new(None) };
}

fn with_worker<R>(work: impl FnOnce(&mut Worker) -> R) -> R {
    let mut worker = WORKER.take().unwrap_or_default();
    let result = work(&mut worker);
    worker.trim();
    WORKER.set(Some(worker));
    result
}

/// The uncompressed bytes of a chunk.
pub trait Content: Sync {
    /// How many there are.
    fn nbytes(&self) -> usize;

    /// Bytes of one block, if they are contiguous in memory.
    fn ready(&self, range: Range<usize>) -> Option<&[u8]>;

    /// Write the bytes of one block, which begins at byte `start`, to `dst`, which has its length.
    ///
    /// # Errors
    ///
    /// What keeps the bytes from being written.
    fn lay_out(&self, start: usize, dst: &mut [u8]) -> Result<()>;
}

impl Content for &[u8] {
    fn nbytes(&self) -> usize {
        self.len()
    }

    fn ready(&self, range: Range<usize>) -> Option<&[u8]> {
        self.get(range)
    }

    fn lay_out(&self, start: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&self[start..start + dst.len()]);
        Ok(())
    }
}

/// A chunk being written.
struct Job<'a> {
    src: &'a dyn Content,
    /// Block 0, where filters compare other blocks with it.
    reference: Option<Vec<u8>>,
    params: &'a EncodeParams,
    user: Option<&'a dyn User>,
    interrupt: Option<&'a Interrupt<'a>>,
    blocksize: usize,
    dict: Option<PreparedDict>,
    /// Encoders with the dictionary, one for each thread that has asked for one.
    encoders: Mutex<Vec<Encoder>>,
    isa: Isa,
}

/// Compress `src` into `out`, which must have at least [`MAX_OVERHEAD`] bytes more than `src`, and return the
/// length of the chunk. `user` supplies what `params` was checked with; `interrupt` says whether the chunk is still wanted.
///
/// # Errors
///
/// [`Error::Argument`] for more than [`MAX_BUFFERSIZE`] bytes, [`Error::Destination`] for a short `out`, and
/// [`Error::Interrupted`], and what the codecs and filters of the user say.
pub fn encode(
    src: &[u8],
    params: &EncodeParams,
    user: Option<&dyn User>,
    interrupt: Option<&Interrupt<'_>>,
    out: &mut [u8],
) -> Result<usize> {
    encode_content(&src, params, user, interrupt, out)
}

/// [`encode`] what is not contiguous in memory.
///
/// # Errors
///
/// As [`encode`], and what `src` returns.
pub fn encode_content(
    src: &dyn Content,
    params: &EncodeParams,
    user: Option<&dyn User>,
    interrupt: Option<&Interrupt<'_>>,
    out: &mut [u8],
) -> Result<usize> {
    let nbytes = src.nbytes();
    check_length(nbytes)?;
    let options = &params.options;
    let blocksize = params.blocksize_for(nbytes);
    let mut header = header_for(options, nbytes, blocksize);
    let capacity = nbytes + header.len();
    let available = out.len();
    let Some(out) = out.get_mut(..capacity) else {
        return Err(Error::Destination { needed: capacity as u64, got: available as u64 });
    };
    // Readers of Blosc1 and C-Blosc2 do not agree on the end of bitshuffled data that are not whole items.
    let odd = options.blosc1 && header.flags & FLAG_BITSHUFFLE != 0 && !nbytes.is_multiple_of(header.typesize.into());
    if nbytes < MIN_BUFFERSIZE || options.clevel == 0 || odd {
        return store(src, header, interrupt, out);
    }
    let nblocks = nbytes.div_ceil(blocksize);
    let leftover = !nbytes.is_multiple_of(blocksize);
    header.flags |= format_bits(params) | if params.pipeline.needs_reference() { FLAG_DELTA } else { 0 };
    let table_end = header.len() + 4 * nblocks;
    let mut start = table_end;
    if start >= capacity {
        return store(src, header, interrupt, out);
    }
    let mut job = Job {
        src,
        reference: None,
        params,
        user,
        interrupt,
        blocksize,
        dict: None,
        encoders: Mutex::default(),
        isa: Isa::detect(),
    };
    if params.pipeline.needs_reference() {
        let mut first = Vec::new();
        src.lay_out(0, resize(&mut first, job.range_of(0).len())?)?;
        job.reference = Some(first);
    }
    if options.use_dict
        && let Some(bytes) = job.train(nblocks, params.nstreams(blocksize))?
        && start + 4 + bytes.len() < capacity
    {
        out[start..start + 4].copy_from_slice(&le32(bytes.len()));
        out[start + 4..start + 4 + bytes.len()].copy_from_slice(&bytes);
        start += 4 + bytes.len();
        job.dict = PreparedDict::new(job.codec(), options.clevel, &bytes).ok();
        if job.dict.is_some() {
            header.blosc2_flags |= FLAG2_USEDICT;
        } else {
            start = table_end;
        }
    }
    let measured = job.is_measured() && user.is_none();
    let (own_split, other_split) = (params.nstreams(blocksize), params.other_nstreams(blocksize));
    let plan =
        if measured { job.plan(own_split, other_split)? } else { Plan { nstreams: own_split, ..Plan::default() } };
    if job.all_incompressible(&plan)? {
        return store(src, header, interrupt, out);
    }
    let nstreams = plan.nstreams;
    header.flags |= if nstreams == 1 { FLAG_DONT_SPLIT } else { 0 };
    let output = Output { out, table: header.len(), end: start, next: 0, early: BTreeMap::new(), full: false };
    let Some(length) = job.encode_blocks(nblocks, &plan, output)? else {
        header.blosc2_flags &= !FLAG2_USEDICT;
        return store(src, header, interrupt, out);
    };
    let nstreams_total = (nblocks - usize::from(leftover)) * nstreams + usize::from(leftover);
    if job.dict.is_none()
        && length == start + 4 * nstreams_total
        && out[start..length].iter().all(|&byte| byte == 0)
        && params.zeros_stay_zeros()
        && !options.blosc1
    {
        header.blosc2_flags |= (Special::Zero as u8) << 4;
        return Ok(finish(header, header.len(), out));
    }
    Ok(finish(header, length, out))
}

/// Write the header of a chunk that has `length` bytes, and return that.
fn finish(mut header: Header, length: usize, out: &mut [u8]) -> usize {
    header.cbytes = u32_of(length);
    out[..header.len()].copy_from_slice(&header.to_bytes()[..header.len()]);
    length
}

fn check_length(nbytes: usize) -> Result<()> {
    if nbytes > MAX_BUFFERSIZE {
        return Err(Error::Argument {
            name: "data",
            expected: format!("at most {MAX_BUFFERSIZE} bytes in a chunk").into(),
            found: i64::try_from(nbytes).unwrap_or(i64::MAX),
        });
    }
    Ok(())
}

fn format_bits(params: &EncodeParams) -> u8 {
    match params.compressor {
        Compressor::BuiltIn(codec) => codec.format().flag_bits(),
        Compressor::NdLz(_) | Compressor::User => CodecFormat::Registered.flag_bits(),
    }
}

fn header_for(options: &EncodeOptions, nbytes: usize, blocksize: usize) -> Header {
    let (version, flags) = match (options.blosc1, options.filters[5]) {
        (false, _) => (VERSION_STABLE, FLAG_EXTENDED),
        (true, filters::SHUFFLE) => (VERSION_BLOSC1, FLAG_SHUFFLE),
        (true, filters::BITSHUFFLE) => (VERSION_BLOSC1, FLAG_BITSHUFFLE),
        (true, _) => (VERSION_BLOSC1, 0),
    };
    Header {
        version,
        versionlz: 1,
        flags,
        typesize: stored_typesize(options.typesize),
        nbytes: u32_of(nbytes),
        blocksize: u32_of(blocksize),
        cbytes: 0,
        filters: options.filters,
        udcodec: options.codec,
        codec_meta: options.codec_meta,
        filters_meta: options.filters_meta,
        blosc2_flags2: 0,
        blosc2_flags: 0,
    }
}

/// Write `src` as it is.
fn store(src: &dyn Content, mut header: Header, interrupt: Option<&Interrupt<'_>>, out: &mut [u8]) -> Result<usize> {
    header.flags |= FLAG_MEMCPYED;
    let length = header.len() + src.nbytes();
    let blocksize = (header.blocksize as usize).max(1);
    for (nblock, block) in out[header.len()..length].chunks_mut(blocksize).enumerate() {
        go_on(interrupt, block.len())?;
        src.lay_out(nblock * blocksize, block)?;
    }
    Ok(finish(header, length, out))
}

/// Sizes here were checked against the format's limit, which is below 2^31.
fn u32_of(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn le32(size: usize) -> [u8; 4] {
    u32_of(size).to_le_bytes()
}

/// Where blocks are put down in index order, whichever order they come in.
struct Output<'o> {
    out: &'o mut [u8],
    /// Where the block table is.
    table: usize,
    /// End of what is there already.
    end: usize,
    /// The block that comes next.
    next: usize,
    /// Blocks that came too early.
    early: BTreeMap<usize, Vec<u8>>,
    full: bool,
}

impl Output<'_> {
    fn put(&mut self, nblock: usize, block: &[u8]) {
        if nblock != self.next {
            self.early.insert(nblock, block.to_vec());
            return;
        }
        self.append(block);
        while let Some(block) = self.early.remove(&self.next) {
            self.append(&block);
        }
    }

    fn append(&mut self, block: &[u8]) {
        // At the capacity itself, storing is as short.
        if self.end + block.len() >= self.out.len() {
            self.full = true;
        }
        if !self.full {
            self.out[self.end..self.end + block.len()].copy_from_slice(block);
        }
        self.record();
        self.end += if self.full { 0 } else { block.len() };
        self.next += 1;
    }

    /// Write the table's entry for the block that comes next.
    fn record(&mut self) {
        let at = self.table + 4 * self.next;
        self.out[at..at + 4].copy_from_slice(&le32(self.end));
    }
}

impl Job<'_> {
    fn codec(&self) -> Codec {
        match self.params.compressor {
            Compressor::BuiltIn(codec) => codec,
            Compressor::NdLz(_) | Compressor::User => Codec::BloscLz,
        }
    }

    fn range_of(&self, nblock: usize) -> Range<usize> {
        let start = nblock * self.blocksize;
        start..self.src.nbytes().min(start + self.blocksize)
    }

    /// The uncompressed bytes of a block, in `scratch` unless they are in memory already.
    fn block<'b>(&'b self, nblock: usize, scratch: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        let range = self.range_of(nblock);
        if let Some(block) = self.src.ready(range.clone()) {
            return Ok(block);
        }
        let scratch = resize(scratch, range.len())?;
        self.src.lay_out(range.start, scratch)?;
        Ok(scratch)
    }

    /// What filters compare a block with.
    fn reference_for(&self, nblock: usize) -> Option<&[u8]> {
        self.reference.as_deref().filter(|_| nblock > 0)
    }

    /// Compress all blocks and fill the table. Returns the end, or None if it does not pay.
    fn encode_blocks(&self, nblocks: usize, plan: &Plan, mut output: Output<'_>) -> Result<Option<usize>> {
        let nthreads = self.params.options.nthreads;
        if nthreads <= 1 || nblocks == 1 || self.user.is_some() || self.src.nbytes() <= SERIAL {
            with_worker(|worker| {
                while output.next < nblocks && !output.full {
                    self.encode_next(plan, &mut output, worker)?;
                }
                Ok(())
            })?;
            return Ok((!output.full).then_some(output.end));
        }
        let output = Mutex::new(output);
        let locked = || output.lock().unwrap_or_else(PoisonError::into_inner);
        pool::run(nthreads, (0..nblocks).collect(), |_, nblock| -> Result<()> {
            if locked().full {
                return Ok(());
            }
            with_worker(|worker| {
                let mut buffer = std::mem::take(&mut worker.output);
                let outcome = resize(&mut buffer, self.most_for(nblock, plan)).and_then(|out| {
                    let length = self.encode_block(nblock, plan, out, worker)?;
                    locked().put(nblock, &out[..length]);
                    Ok(())
                });
                worker.output = buffer;
                outcome
            })
        })?;
        let output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((!output.full).then_some(output.end))
    }

    /// Compress the block that comes next to where it belongs, without a copy as long as it fits.
    fn encode_next(&self, plan: &Plan, output: &mut Output<'_>, worker: &mut Worker) -> Result<()> {
        let nblock = output.next;
        let most = self.most_for(nblock, plan);
        if output.out.len() - output.end > most {
            let length = self.encode_block(nblock, plan, &mut output.out[output.end..output.end + most], worker)?;
            output.record();
            output.end += length;
            output.next += 1;
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut worker.output);
        let outcome = resize(&mut buffer, most).and_then(|out| {
            let length = self.encode_block(nblock, plan, out, worker)?;
            output.append(&out[..length]);
            Ok(())
        });
        worker.output = buffer;
        outcome
    }

    /// Most bytes that a block can take: all streams stored, or as runs.
    fn most_for(&self, nblock: usize, plan: &Plan) -> usize {
        let nbytes = self.range_of(nblock).len();
        nbytes + 5 * plan.nstreams_of(nbytes, self.blocksize)
    }

    /// Filter and compress one block into `out`; return how many bytes it took.
    fn encode_block(&self, nblock: usize, plan: &Plan, out: &mut [u8], worker: &mut Worker) -> Result<usize> {
        if let Some(done) = plan.done.get(&nblock) {
            out[..done.len()].copy_from_slice(done);
            return Ok(done.len());
        }
        let Worker { block, filters, encoder, prover, .. } = worker;
        let mut prover = Some(prover).filter(|_| self.proves());
        let block = self.filter(nblock, block, filters)?;
        let nstreams = plan.nstreams_of(block.len(), self.blocksize);
        let mut at = 0;
        for (n, stream) in block.chunks_exact((block.len() / nstreams).max(1)).enumerate() {
            go_on(self.interrupt, stream.len())?;
            let quicker = plan.searches.get(n).and_then(Option::as_ref).filter(|_| nstreams == plan.searches.len());
            at += self.encode_stream(stream, quicker, &mut out[at..], encoder, prover.as_deref_mut())?.0;
        }
        Ok(at)
    }

    /// One block as the filters leave it; `buffer` is for one that is not contiguous in memory.
    fn filter<'b>(&'b self, nblock: usize, buffer: &'b mut Vec<u8>, scratch: &'b mut Scratch) -> Result<&'b [u8]> {
        let block = self.block(nblock, buffer)?;
        let user = self.user.map(User::filters);
        self.params.pipeline.forward(self.isa, block, self.reference_for(nblock), scratch, user)
    }

    /// Whether a proof takes less time than the search that it replaces.
    fn proves(&self) -> bool {
        let slow = matches!(self.params.compressor, Compressor::BuiltIn(Codec::Lz4Hc | Codec::Zlib | Codec::Zstd));
        slow && self.dict.is_none()
    }

    /// Whether there are searches to choose from.
    fn is_measured(&self) -> bool {
        matches!(self.params.compressor, Compressor::BuiltIn(codec) if codec != Codec::Lz4) && self.dict.is_none()
    }

    /// The encoder of this thread.
    fn encoder<'s>(&self, kept: &'s mut Option<Encoder>) -> Result<&'s mut Encoder> {
        let (codec, clevel) = (self.codec(), self.params.search_level());
        let fitting = kept.take().filter(|kept| kept.codec() == codec && kept.clevel() == clevel);
        Ok(kept.insert(match fitting {
            Some(fitting) => fitting,
            None => Encoder::new(codec, clevel, None)?,
        }))
    }

    /// Write one stream with its csize; `out` can hold the stream as it is. Returns the length, and whether the stream is
    /// proven to be incompressible.
    fn encode_stream(
        &self,
        stream: &[u8],
        quicker: Option<&Quicker>,
        out: &mut [u8],
        encoder: &mut Option<Encoder>,
        mut prover: Option<&mut Prover>,
    ) -> Result<(usize, bool)> {
        let (csize, body) = out.split_at_mut(4);
        // Blosc1 knows no runs.
        if let Some(value) = run_of(stream).filter(|_| !self.params.options.blosc1) {
            csize.copy_from_slice(&(-i32::from(value)).to_le_bytes());
            if value == 0 {
                return Ok((4, false));
            }
            body[0] = 1;
            return Ok((5, false));
        }
        let stored = prover.as_mut().is_some_and(|prover| prover.is_incompressible(stream));
        // At the stream's own length it would be read as stored.
        let most = stream.len() - 1;
        let length = if stored { None } else { self.encode_coded(stream, quicker, &mut body[..most], encoder)? };
        let length = length.unwrap_or_else(|| {
            body[..stream.len()].copy_from_slice(stream);
            stream.len()
        });
        csize.copy_from_slice(&le32(length));
        Ok((4 + length, stored))
    }

    /// Run the codec; None if the result does not fit into `out`.
    fn encode_coded(
        &self,
        src: &[u8],
        quicker: Option<&Quicker>,
        out: &mut [u8],
        encoder: &mut Option<Encoder>,
    ) -> Result<Option<usize>> {
        if out.is_empty() {
            return Ok(None);
        }
        let options = &self.params.options;
        let codec = match (self.params.compressor, self.user) {
            (Compressor::BuiltIn(codec), _) => codec,
            (Compressor::NdLz(plan), _) => return Ok(ndlz::encode(plan, src, out)),
            (Compressor::User, Some(user)) => {
                let length = user.encode(options.codec, options.codec_meta, src, out)?;
                return Ok((length > 0 && length <= out.len()).then_some(length));
            }
            (Compressor::User, None) => return Ok(None),
        };
        if let Some(dict) = &self.dict {
            let kept = self.encoders.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut encoder = match kept {
                Some(encoder) => encoder,
                None => Encoder::new(codec, options.clevel, Some(dict))?,
            };
            let length = encoder.encode(src, out);
            self.encoders.lock().unwrap_or_else(PoisonError::into_inner).push(encoder);
            return Ok(length);
        }
        let encoder = self.encoder(encoder)?;
        if let Some(quicker) = quicker {
            let length = encoder.encode_at(quicker.candidate, src, out);
            if length.is_some_and(|length| quicker.is_alike(length)) {
                return Ok(length);
            }
        }
        Ok(encoder.encode(src, out))
    }

    /// Build a dictionary from the filtered blocks, if they are enough for one.
    fn train(&self, nblocks: usize, nstreams: usize) -> Result<Option<Vec<u8>>> {
        let nbytes = self.src.nbytes();
        let most = MAX_DICT.min(nbytes / 20);
        let nsamples = (nblocks * nstreams).max(8);
        let sample = nbytes / nsamples / 16;
        if most < MIN_DICT || sample == 0 {
            return Ok(None);
        }
        let mut samples = Vec::new();
        samples.try_reserve_exact(nsamples * sample).map_err(|_| Error::OutOfMemory { needed: nbytes as u64 })?;
        let (mut buffer, mut scratch) = (Vec::new(), Scratch::default());
        for nblock in 0..nblocks {
            go_on(self.interrupt, self.blocksize)?;
            let block = self.filter(nblock, &mut buffer, &mut scratch)?;
            let wanted = (nsamples * sample - samples.len()).min(block.len());
            samples.extend_from_slice(&block[..wanted]);
            if samples.len() == nsamples * sample {
                break;
            }
        }
        Ok(train_dictionary(self.codec(), &samples, &vec![sample; nsamples], most))
    }
}

/// The byte that all of `stream` consists of.
fn run_of(stream: &[u8]) -> Option<u8> {
    let (&first, rest) = stream.split_first()?;
    let head = rest.len().min(64);
    (rest[..head].iter().all(|&byte| byte == first) && *rest == stream[..rest.len()]).then_some(first)
}
