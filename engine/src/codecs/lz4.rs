//! LZ4 and LZ4HC blocks through liblz4: the only file of the codecs that leaves safe Rust.
//!
//! Blocks are bare: no frame, no size. The library is given the exact bounds of both slices and
//! checks every length and offset against them; the results are checked here against what was
//! asked for. Each encoder owns one state of the library, each prepared dictionary another one
//! that is only read after its making.
//!
//! Source: docs/format/codecs.md, section "LZ4"; the library's `lz4.h` and `lz4hc.h`.

use std::ffi::{c_char, c_int};
use std::ptr::NonNull;
use std::sync::Arc;

use super::Verdict;
use crate::{Error, Result};

// Linked by this crate, which declares only a part of what it links.
use lz4_sys as _;

const TOO_LONG: &str = "the stream is longer than LZ4 can handle";
const DAMAGED: &str = "the LZ4 block is damaged or of another length";

/// Room for the states of the library when it says that there is no memory, in bytes.
const FAST_STATE_SIZE: u64 = 16 * 1024;
const HC_STATE_SIZE: u64 = 256 * 1024;

mod ffi {
    use std::ffi::{c_char, c_int};

    /// A state of the fast encoder, opaque.
    #[repr(C)]
    pub(super) struct Stream([u8; 0]);

    /// A state of the thorough encoder, opaque.
    #[repr(C)]
    pub(super) struct StreamHc([u8; 0]);

    #[expect(unsafe_code, reason = "functions of liblz4 that lz4-sys does not declare")]
    // SAFETY: the signatures are those of lz4.h and lz4hc.h, version 1.10.
    unsafe extern "C" {
        pub(super) safe fn LZ4_versionNumber() -> c_int;
        pub(super) fn LZ4_decompress_safe(
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            dst_capacity: c_int,
        ) -> c_int;
        pub(super) fn LZ4_decompress_safe_partial(
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            target: c_int,
            dst_capacity: c_int,
        ) -> c_int;
        pub(super) fn LZ4_decompress_safe_usingDict(
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            dst_capacity: c_int,
            dict: *const c_char,
            dict_size: c_int,
        ) -> c_int;

        pub(super) safe fn LZ4_createStream() -> *mut Stream;
        pub(super) safe fn LZ4_sizeofState() -> c_int;
        pub(super) fn LZ4_initStream(stream: *mut Stream, size: usize) -> *mut Stream;
        pub(super) fn LZ4_freeStream(stream: *mut Stream) -> c_int;
        pub(super) fn LZ4_compress_fast_extState_fastReset(
            state: *mut Stream,
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            dst_capacity: c_int,
            acceleration: c_int,
        ) -> c_int;
        pub(super) fn LZ4_loadDictSlow(stream: *mut Stream, dict: *const c_char, dict_size: c_int) -> c_int;
        pub(super) fn LZ4_resetStream_fast(stream: *mut Stream);
        pub(super) fn LZ4_attach_dictionary(working: *mut Stream, dict: *const Stream);
        pub(super) fn LZ4_compress_fast_continue(
            stream: *mut Stream,
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            dst_capacity: c_int,
            acceleration: c_int,
        ) -> c_int;

        pub(super) safe fn LZ4_createStreamHC() -> *mut StreamHc;
        pub(super) safe fn LZ4_sizeofStateHC() -> c_int;
        pub(super) fn LZ4_initStreamHC(stream: *mut StreamHc, size: usize) -> *mut StreamHc;
        pub(super) fn LZ4_freeStreamHC(stream: *mut StreamHc) -> c_int;
        pub(super) fn LZ4_compress_HC_extStateHC_fastReset(
            state: *mut StreamHc,
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            dst_capacity: c_int,
            level: c_int,
        ) -> c_int;
        pub(super) fn LZ4_resetStreamHC_fast(stream: *mut StreamHc, level: c_int);
        pub(super) fn LZ4_loadDictHC(stream: *mut StreamHc, dict: *const c_char, dict_size: c_int) -> c_int;
        pub(super) fn LZ4_attach_HC_dictionary(working: *mut StreamHc, dict: *const StreamHc);
        pub(super) fn LZ4_compress_HC_continue(
            stream: *mut StreamHc,
            src: *const c_char,
            dst: *mut c_char,
            src_size: c_int,
            dst_capacity: c_int,
        ) -> c_int;
    }
}

/// The library's version, as "1.10.0".
pub(super) fn version() -> String {
    let number = ffi::LZ4_versionNumber();
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}

/// A slice's start as the library wants it.
fn start(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// A mutable slice's start as the library wants it.
fn start_mut(bytes: &mut [u8]) -> *mut c_char {
    bytes.as_mut_ptr().cast()
}

/// The lengths of source and destination as the library wants them: a destination longer than it
/// can count is used in part.
fn lengths(src: &[u8], dst: &[u8]) -> Option<(c_int, c_int)> {
    let capacity = c_int::try_from(dst.len()).unwrap_or(c_int::MAX);
    Some((c_int::try_from(src.len()).ok()?, capacity))
}

/// The result of an encoder, where 0 and less is failure.
fn written(result: c_int) -> Option<usize> {
    usize::try_from(result).ok().filter(|&n| n > 0)
}

/// An owned state of the fast encoder.
struct Stream(NonNull<ffi::Stream>);

impl Stream {
    fn new() -> Result<Self> {
        NonNull::new(ffi::LZ4_createStream()).map(Self).ok_or(Error::OutOfMemory { needed: FAST_STATE_SIZE })
    }

    /// The result of a call with this state. A call that fails leaves the state undefined, so the state is made anew.
    #[expect(unsafe_code, reason = "a call of the library")]
    fn outcome(&mut self, result: c_int) -> Option<usize> {
        let written = written(result);
        if written.is_none() {
            let size = usize::try_from(ffi::LZ4_sizeofState()).unwrap_or(0);
            // SAFETY: the state is live and exclusively held, and has the size that the library says.
            unsafe { ffi::LZ4_initStream(self.0.as_ptr(), size) };
        }
        written
    }
}

impl Drop for Stream {
    #[expect(unsafe_code, reason = "the state belongs to the library")]
    fn drop(&mut self) {
        // SAFETY: the state came from LZ4_createStream and is freed once.
        unsafe { ffi::LZ4_freeStream(self.0.as_ptr()) };
    }
}

// SAFETY: a state is memory that is tied to no thread.
#[expect(unsafe_code, reason = "the pointer is owned")]
unsafe impl Send for Stream {}

/// An owned state of the thorough encoder.
struct StreamHc(NonNull<ffi::StreamHc>);

impl StreamHc {
    fn new() -> Result<Self> {
        NonNull::new(ffi::LZ4_createStreamHC()).map(Self).ok_or(Error::OutOfMemory { needed: HC_STATE_SIZE })
    }

    /// The result of a call with this state. A call that fails leaves the state undefined, so the state is made anew.
    #[expect(unsafe_code, reason = "a call of the library")]
    fn outcome(&mut self, result: c_int) -> Option<usize> {
        let written = written(result);
        if written.is_none() {
            let size = usize::try_from(ffi::LZ4_sizeofStateHC()).unwrap_or(0);
            // SAFETY: the state is live and exclusively held, and has the size that the library says.
            unsafe { ffi::LZ4_initStreamHC(self.0.as_ptr(), size) };
        }
        written
    }
}

impl Drop for StreamHc {
    #[expect(unsafe_code, reason = "the state belongs to the library")]
    fn drop(&mut self) {
        // SAFETY: the state came from LZ4_createStreamHC and is freed once.
        unsafe { ffi::LZ4_freeStreamHC(self.0.as_ptr()) };
    }
}

// SAFETY: a state is memory that is tied to no thread.
#[expect(unsafe_code, reason = "the pointer is owned")]
unsafe impl Send for StreamHc {}

/// A dictionary hashed for the fast encoder.
pub(super) struct FastDict {
    stream: Stream,
    /// What the state points into.
    _bytes: Box<[u8]>,
}

impl FastDict {
    /// Hashes a dictionary, of which the last 64 KiB count.
    #[expect(unsafe_code, reason = "a call of the library")]
    pub(super) fn new(bytes: &[u8]) -> Result<Self> {
        let bytes: Box<[u8]> = bytes[bytes.len().saturating_sub(65536)..].into();
        let stream = Stream::new()?;
        let size = c_int::try_from(bytes.len()).unwrap_or(0);
        // SAFETY: the state is live and exclusively held; `size` bytes are readable, and as a boxed
        // slice they stay where they are for as long as the state, which keeps a pointer to them.
        unsafe { ffi::LZ4_loadDictSlow(stream.0.as_ptr(), start(&bytes), size) };
        Ok(Self { stream, _bytes: bytes })
    }
}

// SAFETY: after `new` the state and the bytes are only read, through const pointers.
#[expect(unsafe_code, reason = "the state is not changed any more")]
unsafe impl Sync for FastDict {}

/// A dictionary laid out for the thorough encoder at one level.
pub(super) struct HcDict {
    stream: StreamHc,
    /// What the state points into.
    _bytes: Box<[u8]>,
}

impl HcDict {
    /// Lays out a dictionary, of which the last 64 KiB count.
    #[expect(unsafe_code, reason = "calls of the library")]
    pub(super) fn new(bytes: &[u8], clevel: u8) -> Result<Self> {
        let bytes: Box<[u8]> = bytes[bytes.len().saturating_sub(65536)..].into();
        let stream = StreamHc::new()?;
        let size = c_int::try_from(bytes.len()).unwrap_or(0);
        // SAFETY: the state is live and exclusively held.
        unsafe { ffi::LZ4_resetStreamHC_fast(stream.0.as_ptr(), clevel.into()) };
        // SAFETY: as above; `size` bytes are readable, and as a boxed slice they stay where they
        // are for as long as the state, which keeps a pointer to them.
        unsafe { ffi::LZ4_loadDictHC(stream.0.as_ptr(), start(&bytes), size) };
        Ok(Self { stream, _bytes: bytes })
    }
}

// SAFETY: after `new` the state and the bytes are only read, through const pointers.
#[expect(unsafe_code, reason = "the state is not changed any more")]
unsafe impl Sync for HcDict {}

/// The fast encoder.
pub(super) struct FastEncoder {
    stream: Stream,
    acceleration: c_int,
    dict: Option<Arc<FastDict>>,
}

impl FastEncoder {
    /// Makes an encoder for `clevel` 1..9: the higher, the less it skips.
    pub(super) fn new(clevel: u8, dict: Option<Arc<FastDict>>) -> Result<Self> {
        Ok(Self { stream: Stream::new()?, acceleration: 10 - c_int::from(clevel.min(9)), dict })
    }

    /// Compresses, or `None` if the result does not fit.
    #[expect(unsafe_code, reason = "calls of the library")]
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let (nbytes, capacity) = lengths(src, dst)?;
        let state = self.stream.0.as_ptr();
        let Some(dict) = &self.dict else {
            // SAFETY: the state was initialised when it was created and is exclusively held;
            // `nbytes` bytes are readable and `capacity` bytes writable.
            let result = unsafe {
                ffi::LZ4_compress_fast_extState_fastReset(
                    state,
                    start(src),
                    start_mut(dst),
                    nbytes,
                    capacity,
                    self.acceleration,
                )
            };
            return self.stream.outcome(result);
        };
        // SAFETY: the state is live and exclusively held; this forgets all earlier input.
        unsafe { ffi::LZ4_resetStream_fast(state) };
        // SAFETY: both states are live, and the dictionary's outlives the next call.
        unsafe { ffi::LZ4_attach_dictionary(state, dict.stream.0.as_ptr()) };
        // SAFETY: the state is live and exclusively held; `nbytes` bytes are readable and
        // `capacity` bytes writable; it knows no other input than the dictionary, which is kept.
        let result = unsafe {
            ffi::LZ4_compress_fast_continue(state, start(src), start_mut(dst), nbytes, capacity, self.acceleration)
        };
        self.stream.outcome(result)
    }
}

impl std::fmt::Debug for FastEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("lz4::FastEncoder").field("acceleration", &self.acceleration).finish_non_exhaustive()
    }
}

/// The library's thorough levels for each `clevel`, from the quickest that may do to the level's own.
const LADDERS: [&[c_int]; 10] =
    [&[1], &[1], &[2], &[2, 3], &[2, 4], &[2, 5], &[2, 4, 6], &[2, 5, 7], &[2, 5, 8], &[2, 6, 9]];

/// The thorough encoder.
pub(super) struct HcEncoder {
    stream: StreamHc,
    level: c_int,
    ladder: &'static [c_int],
    dict: Option<Arc<HcDict>>,
}

impl HcEncoder {
    /// Makes an encoder for `clevel` 1..9.
    pub(super) fn new(clevel: u8, dict: Option<Arc<HcDict>>) -> Result<Self> {
        let ladder = LADDERS[usize::from(clevel.min(9))];
        Ok(Self { stream: StreamHc::new()?, level: c_int::from(clevel.min(9)), ladder, dict })
    }

    /// How many searches there are.
    pub(super) fn candidates(&self) -> usize {
        self.ladder.len()
    }

    /// Compresses with a search, or `None` if the result does not fit. A dictionary is laid out for the level's own.
    #[expect(unsafe_code, reason = "calls of the library")]
    pub(super) fn encode(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let (nbytes, capacity) = lengths(src, dst)?;
        let state = self.stream.0.as_ptr();
        let Some(dict) = &self.dict else {
            // SAFETY: the state was initialised when it was created and is exclusively held;
            // `nbytes` bytes are readable and `capacity` bytes writable.
            let result = unsafe {
                ffi::LZ4_compress_HC_extStateHC_fastReset(
                    state,
                    start(src),
                    start_mut(dst),
                    nbytes,
                    capacity,
                    self.ladder[candidate],
                )
            };
            return self.stream.outcome(result);
        };
        // SAFETY: the state is live and exclusively held; this forgets all earlier input.
        unsafe { ffi::LZ4_resetStreamHC_fast(state, self.level) };
        // SAFETY: both states are live, and the dictionary's outlives the next call.
        unsafe { ffi::LZ4_attach_HC_dictionary(state, dict.stream.0.as_ptr()) };
        // SAFETY: the state is live and exclusively held; `nbytes` bytes are readable and
        // `capacity` bytes writable; it knows no other input than the dictionary, which is kept.
        let result = unsafe { ffi::LZ4_compress_HC_continue(state, start(src), start_mut(dst), nbytes, capacity) };
        self.stream.outcome(result)
    }
}

impl std::fmt::Debug for HcEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("lz4::HcEncoder").field("level", &self.level).finish_non_exhaustive()
    }
}

/// Lengths for a decoder, which must be counted exactly.
fn exact(src: &[u8], dst: &[u8]) -> Verdict<(c_int, c_int)> {
    match (c_int::try_from(src.len()), c_int::try_from(dst.len())) {
        (Ok(src), Ok(dst)) => Ok((src, dst)),
        _ => Err(TOO_LONG),
    }
}

/// Decodes a block that must fill `dst` exactly, with `history` in front of it.
#[expect(unsafe_code, reason = "calls of the library")]
pub(super) fn decode(src: &[u8], dst: &mut [u8], history: &[u8]) -> Verdict {
    let (nbytes, capacity) = exact(src, dst)?;
    let result = if history.is_empty() {
        // SAFETY: `nbytes` bytes are readable and `capacity` bytes writable.
        unsafe { ffi::LZ4_decompress_safe(start(src), start_mut(dst), nbytes, capacity) }
    } else {
        let history = &history[history.len().saturating_sub(65536)..];
        let size = c_int::try_from(history.len()).map_err(|_| TOO_LONG)?;
        // SAFETY: as above, and `size` bytes of history are readable.
        unsafe {
            ffi::LZ4_decompress_safe_usingDict(start(src), start_mut(dst), nbytes, capacity, start(history), size)
        }
    };
    if result == capacity { Ok(()) } else { Err(DAMAGED) }
}

/// Whether the first `wanted` bytes of a block can be decoded alone.
///
/// A distance of 0 breaks the format. The library takes it for a run of zeros, but where it has been told to stop it
/// leaves the bytes as they were. A block that ends too early can not either.
pub(super) fn has_literal_prefix(src: &[u8], wanted: usize) -> bool {
    let mut src = src.iter();
    let length = |src: &mut std::slice::Iter<'_, u8>, nibble: u8| {
        let mut length = usize::from(nibble);
        if nibble == 15 {
            loop {
                let more = *src.next()?;
                length += usize::from(more);
                if more < 255 {
                    break;
                }
            }
        }
        Some(length)
    };
    let mut done = 0;
    let mut sequence = || {
        let token = *src.next()?;
        let literals = length(&mut src, token >> 4)?;
        done += literals;
        if done >= wanted {
            return Some(true);
        }
        if literals > 0 {
            src.nth(literals - 1)?;
        }
        let distance = u16::from_le_bytes([*src.next()?, *src.next()?]);
        if distance == 0 {
            return None;
        }
        done += length(&mut src, token & 15)? + 4;
        Some(done >= wanted)
    };
    loop {
        match sequence() {
            Some(true) => return true,
            Some(false) => {}
            None => return false,
        }
    }
}

/// Decodes the first `dst.len()` bytes of a block that has [a literal prefix](has_literal_prefix), and stops there.
#[expect(unsafe_code, reason = "a call of the library")]
pub(super) fn decode_prefix(src: &[u8], dst: &mut [u8]) -> Verdict {
    let (nbytes, capacity) = exact(src, dst)?;
    // SAFETY: `nbytes` bytes are readable and `capacity` bytes writable; the target is the capacity.
    let result = unsafe { ffi::LZ4_decompress_safe_partial(start(src), start_mut(dst), nbytes, capacity, capacity) };
    if result == capacity { Ok(()) } else { Err(DAMAGED) }
}
