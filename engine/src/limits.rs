//! Lengths that the format fixes, and the largest of what it allows.
//!
//! Source: docs/format/chunk.md, section "Limits"; docs/format/b2nd.md.

/// Bytes of the short header of Blosc1, the least that any chunk has.
pub const MIN_HEADER_LENGTH: usize = 16;
/// Bytes of the extended header.
pub const EXTENDED_HEADER_LENGTH: usize = 32;
/// Most bytes that a chunk can hold uncompressed.
pub const MAX_BUFFERSIZE: usize = 2_147_483_615;
/// Largest block, in bytes.
pub const MAX_BLOCKSIZE: usize = 536_866_816;
/// Largest item, in bytes; above 255 a chunk records 1.
pub const MAX_TYPESIZE: usize = 536_866_816;
/// Slots of the filter pipeline.
pub const MAX_FILTERS: usize = 6;
/// Most dimensions of an array.
pub const MAX_DIMS: usize = 16;
