//! Lazy chunks: what is known of a chunk in a file without reading its data.
//!
//! ```text
//! header, lazy bit set | bstarts | nchunk: i32 | offset: i64 | compressed size of each block: i32 ...
//! ```
//!
//! They are made for callers that look into a chunk, and never stored or read back.
//!
//! Source: docs/format/chunk.md, section "Lazy chunks".

use crate::chunk::{Chunk, first_bytes};
use crate::error::Result;
use crate::header::{Body, EXTENDED_HEADER_LENGTH, FLAG2_LAZY, Header};
use crate::source::Source;

/// Return the lazy form of chunk number `nchunk`, which stands at `offset` of its frame. Special chunks, and
/// chunks with a short header, come as they are.
///
/// # Errors
///
/// As [`Chunk::open`].
pub fn lazy_chunk(source: Source<'_>, nchunk: i32, offset: i64) -> Result<Vec<u8>> {
    let chunk = Chunk::open(source, None, None)?;
    let header = chunk.header;
    if matches!(header.body(), Body::Special(_) | Body::Empty) || !header.is_extended() {
        let mut whole = vec![0; header.cbytes as usize];
        match chunk.whole() {
            Some(bytes) => whole.copy_from_slice(bytes),
            None => source.read_all(0, &mut whole, "chunk")?,
        }
        return Ok(whole);
    }
    let (head, sizes) = chunk.lazy_parts();
    let mut out = head.to_vec();
    out.resize(EXTENDED_HEADER_LENGTH + 4 * chunk.nblocks, 0);
    out[31] |= FLAG2_LAZY;
    out.extend_from_slice(&nchunk.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    for size in sizes {
        out.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
    }
    Ok(out)
}

/// Return what the header of the chunk at `source` says, after checking it.
///
/// # Errors
///
/// As [`Header::parse`], and a failing read.
pub fn describe(source: Source<'_>) -> Result<Header> {
    Ok(first_bytes(source)?.0)
}
