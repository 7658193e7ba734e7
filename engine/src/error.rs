//! What can go wrong in the engine, with the numbers.
//!
//! Every message is one line in the format's words: what was read, at which byte, what was
//! expected and what was there. Positions count from the first byte of the chunk.

use std::borrow::Cow;

/// A result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a codec or filter of arrays misses in a container without the shape.
pub const NEEDS_SHAPE: &str = "needs the block shape of the metalayer b2nd (or caterva), and there is none";

/// A failure of the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input ends before a structure does.
    #[error("{what} at byte {at}: need {needed} bytes, got {got}")]
    Truncated {
        /// The structure that was read.
        what: &'static str,
        /// Where it begins, in bytes.
        at: u64,
        /// How many bytes it needs.
        needed: u64,
        /// How many bytes there were.
        got: u64,
    },
    /// A field holds a value that the format forbids.
    #[error("{field} at byte {at}: expected {expected}, found {found}")]
    Field {
        /// The field's name in the format's words.
        field: &'static str,
        /// Where it is, in bytes.
        at: u64,
        /// What the format allows there.
        expected: Cow<'static, str>,
        /// What was there.
        found: i64,
    },
    /// A compressed stream does not decode to what it must.
    #[error("{codec} stream of block {nblock} at byte {at}: {reason}")]
    Stream {
        /// The codec's name.
        codec: &'static str,
        /// The block that holds the stream, from 0.
        nblock: u64,
        /// Where the stream's bytes begin.
        at: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A codec or filter that is registered but not built in, or not known at all.
    #[error("{what} {id} ({name}) is not available")]
    Unsupported {
        /// `"codec"` or `"filter"`.
        what: &'static str,
        /// Its id, or its format number for formats without an id.
        id: u8,
        /// Its registered name, or "unknown".
        name: &'static str,
    },
    /// A codec or filter that depends on the shape of an array's blocks, and the container has none.
    #[error("{what} {id} ({name}) in {field} at byte {at}: {}", NEEDS_SHAPE)]
    NeedsShape {
        /// `"codec"` or `"filter"`.
        what: &'static str,
        /// Its id.
        id: u8,
        /// Its registered name.
        name: &'static str,
        /// The field of the chunk that names it.
        field: &'static str,
        /// Where that is, in bytes.
        at: u64,
    },
    /// An argument is outside its range.
    #[error("{name}: expected {expected}, got {found}")]
    Argument {
        /// The argument's name.
        name: &'static str,
        /// Its range.
        expected: Cow<'static, str>,
        /// What was given.
        found: i64,
    },
    /// The destination cannot hold the result.
    #[error("destination: need {needed} bytes, got {got}")]
    Destination {
        /// Bytes that the result takes.
        needed: u64,
        /// Bytes that were offered.
        got: u64,
    },
    /// Memory for a result that the caller asked for could not be had.
    #[error("out of memory: {needed} bytes asked for")]
    OutOfMemory {
        /// Bytes that were asked for.
        needed: u64,
    },
    /// Reading failed.
    #[error("reading {length} bytes at byte {at} of the file: OS error {errno}")]
    Io {
        /// Position in the file, or in whatever is read.
        at: u64,
        /// Bytes that were asked for.
        length: u64,
        /// The operating system's error number.
        errno: i32,
    },
    /// The caller has given the call up.
    #[error("interrupted")]
    Interrupted,
    /// A codec or filter supplied by the caller failed.
    #[error("{what} {id} of the user: {reason}")]
    User {
        /// `"codec"` or `"filter"`.
        what: &'static str,
        /// Its id.
        id: u8,
        /// What it said.
        reason: Cow<'static, str>,
    },
}
