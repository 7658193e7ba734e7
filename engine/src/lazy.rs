//! Lazy chunks: what is known of a chunk in a file without reading its data.
//!
//! ```text
//! header, lazy bit set | bstarts | nchunk: i32 | offset: i64 | compressed size of each block: i32 ...
//! ```
//!
//! They are made for callers that look into a chunk, and never stored or read back.
//!
//! Source: docs/format/chunk.md, section "Lazy chunks".

use crate::chunk::{Chunk, extend, first_bytes};
use crate::error::{Error, Result};
use crate::header::{Body, FLAG2_LAZY, Header};
use crate::limits::EXTENDED_HEADER_LENGTH;
use crate::source::Source;

/// Return the lazy form of chunk number `nchunk`, which is at `offset` of its frame. Special chunks, and
/// chunks with a short header, come as they are.
///
/// # Errors
///
/// As [`Chunk::open`].
pub fn lazy_chunk(source: Source<'_>, nchunk: i32, offset: i64) -> Result<Vec<u8>> {
    let chunk = Chunk::open_table_of(source)?;
    let header = chunk.header;
    if matches!(header.body(), Body::Special(_) | Body::Empty) || !header.is_extended() {
        let (_, mut bytes) = first_bytes(source)?;
        let cbytes = header.cbytes as usize;
        extend(&mut bytes, source, cbytes, "chunk")?;
        return Ok(bytes[..cbytes].to_vec());
    }
    // A chunk stored uncompressed has no table that would have shown that so many blocks can be there.
    let length = EXTENDED_HEADER_LENGTH + 8 * chunk.nblocks + 12;
    if 4 * chunk.nblocks > header.cbytes as usize {
        return Err(Error::Field {
            field: "blocksize",
            at: 8,
            expected: format!("blocks of at least 4 bytes in a lazy chunk of {} bytes", header.cbytes).into(),
            found: header.blocksize.into(),
        });
    }
    let mut out = Vec::new();
    out.try_reserve_exact(length).map_err(|_| Error::OutOfMemory { needed: length as u64 })?;
    out.extend_from_slice(&header.to_bytes());
    out[31] |= FLAG2_LAZY;
    out.extend(chunk.table_bytes().flatten());
    out.extend_from_slice(&nchunk.to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    for nblock in 0..chunk.nblocks {
        let size = u32::try_from(chunk.stored_len(nblock)).unwrap_or(u32::MAX);
        out.extend_from_slice(&size.to_le_bytes());
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
