//! The trailer of a commit: with its record, and the fingerprint over all metadata.
//!
//! ```text
//! trailer without tail | record: SCCOMIT1 last_synced sealed_from header_len flags header XXH3-64 | 0xCE length 0xD8 3 XXH3-128
//! ```
//!
//! Each commit makes one, after chunks that have driven all else from the caches; so this is one call that
//! touches little. What there is to say, and reading it again, is not done here.
//!
//! Source: docs/format/integrity.md, sections "Commit record" and "Frame fingerprint".

use twox_hash::{XxHash3_64, XxHash3_128};

use super::feed;
use crate::error::Result;
use crate::source::ChunkLocation;
use superchunk_engine::Error;

/// What a commit record begins with.
const RECORD_MAGIC: [u8; 8] = *b"SCCOMIT1";
/// Bytes of a record besides the header in it.
const RECORD_LENGTH: usize = 40;
/// Bytes behind a record: marker and length, marker and type, fingerprint.
const TAIL_LENGTH: usize = 23;
const FINGERPRINT_LENGTH: usize = 16;
/// Index chunks up to this size are hashed in one piece with the rest.
const SHORT: usize = 64 * 1024;

/// What a commit record says.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The whole header that the commit writes.
    pub header: &'a [u8],
    /// Bytes that were on the disk before the header named them.
    pub last_synced: u64,
    /// Chunks from this byte on have seals.
    pub sealed_from: u64,
    /// Whether the header in the frame may have old bytes behind its first sector.
    pub pending: bool,
}

/// Return `trailer`, a trailer of the type that has a fingerprint, with a record and its fingerprint.
///
/// The bits of the header that `mask` has not do not count for the fingerprint.
///
/// # Errors
///
/// [`Error::Truncated`] when a part is shorter than it has to be; failures of reading the index chunk.
pub fn proven_trailer(
    trailer: &[u8],
    record: Record<'_>,
    mask: &[u8],
    index_chunk: Option<ChunkLocation<'_>>,
) -> Result<Vec<u8>> {
    let short = |what, needed: usize, got: usize| {
        Error::Truncated { what, at: 0, needed: needed as u64, got: got as u64 }.into()
    };
    let Some((body, tail)) = trailer.split_last_chunk::<TAIL_LENGTH>() else {
        return Err(short("trailer", TAIL_LENGTH, trailer.len()));
    };
    let header = record.header;
    if mask.len() != header.len() {
        return Err(short("mask of the header", header.len(), mask.len()));
    }
    let length = trailer.len() + RECORD_LENGTH + header.len();
    let (Ok(header_length), Ok(trailer_length)) = (u32::try_from(header.len()), u32::try_from(length)) else {
        return Err(short("trailer", length, u32::MAX as usize));
    };
    let mut trailer = Vec::new();
    trailer.try_reserve_exact(length).map_err(|_| Error::OutOfMemory { needed: length as u64 })?;
    trailer.extend_from_slice(body);
    trailer.extend_from_slice(&RECORD_MAGIC);
    trailer.extend_from_slice(&record.last_synced.to_le_bytes());
    trailer.extend_from_slice(&record.sealed_from.to_le_bytes());
    trailer.extend_from_slice(&header_length.to_le_bytes());
    trailer.extend_from_slice(&u32::from(record.pending).to_le_bytes());
    trailer.extend_from_slice(header);
    let hash = XxHash3_64::oneshot(&trailer[body.len()..]);
    trailer.extend_from_slice(&hash.to_le_bytes());
    trailer.push(tail[0]);
    trailer.extend_from_slice(&trailer_length.to_be_bytes());
    trailer.extend_from_slice(&tail[5..TAIL_LENGTH - FINGERPRINT_LENGTH]);

    let masked = header.iter().zip(mask).map(|(byte, mask)| byte & mask);
    let fingerprint = match index_chunk {
        None => hash_short(masked, &[], &trailer),
        Some(ChunkLocation::Bytes(chunk)) if chunk.len() <= SHORT => hash_short(masked, chunk, &trailer),
        Some(location) => {
            let mut hasher = XxHash3_128::new();
            hasher.write(&masked.collect::<Vec<u8>>());
            feed(&[location], |bytes| hasher.write(bytes))?;
            hasher.write(&trailer);
            hasher.finish_128()
        }
    };
    trailer.extend_from_slice(&fingerprint.to_le_bytes());
    Ok(trailer)
}

fn hash_short(masked: impl Iterator<Item = u8>, chunk: &[u8], trailer: &[u8]) -> u128 {
    let mut bytes: Vec<u8> = masked.collect();
    bytes.extend_from_slice(chunk);
    bytes.extend_from_slice(trailer);
    XxHash3_128::oneshot(&bytes)
}
