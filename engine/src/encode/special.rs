//! Writing chunks of one value.
//!
//! Source: docs/format/chunk.md, section "Special values".

use super::{check_length, header_for, le32, u32_of};
use crate::error::{Error, Result};
use crate::header::{FLAG_DONT_SPLIT, FLAG_MEMCPYED, Header, Special};
use crate::limits::{EXTENDED_HEADER_LENGTH, MAX_BLOCKSIZE, MAX_TYPESIZE};
use crate::params::{EncodeOptions, EncodeParams};

/// Return a chunk of one special value; `value` is the item of [`Special::Value`].
///
/// # Errors
///
/// [`Error::Argument`] when sizes and value do not fit together.
pub fn special_chunk(
    special: Special,
    nbytes: usize,
    typesize: usize,
    value: Option<&[u8]>,
    blocksize: usize,
) -> Result<Vec<u8>> {
    check_length(nbytes)?;
    let bad = |name, expected: String, found: usize| {
        Err(Error::Argument { name, expected: expected.into(), found: i64::try_from(found).unwrap_or(i64::MAX) })
    };
    if typesize == 0 || typesize > MAX_TYPESIZE {
        return bad("typesize", "1 to 536866816".into(), typesize);
    }
    if special == Special::Nan && typesize != 4 && typesize != 8 {
        return bad("typesize", "4 or 8 for NaN".into(), typesize);
    }
    if special != Special::Zero && !nbytes.is_multiple_of(typesize) {
        return bad("nbytes", format!("a multiple of the typesize {typesize}"), nbytes);
    }
    let value = match (special, value) {
        (Special::Value, Some(value)) if value.len() == typesize && nbytes > 0 => value,
        (Special::Value, value) => {
            return bad("value", format!("{typesize} bytes, for at least one item"), value.map_or(0, <[u8]>::len));
        }
        _ => &[],
    };
    let mut header = plain_header(nbytes, typesize, blocksize)?;
    header.cbytes = u32_of(EXTENDED_HEADER_LENGTH + value.len());
    header.blosc2_flags = (special as u8) << 4;
    let mut out = header.to_bytes().to_vec();
    out.extend_from_slice(value);
    Ok(out)
}

/// Return a chunk of zeros that is no special chunk: blocks of one empty stream each, or stored bytes if there are few.
///
/// For frames whose readers take no special chunk of zeros and no repeated item there.
///
/// # Errors
///
/// [`Error::Argument`] when `nbytes` or `typesize` is out of range.
pub fn zeros_in_blocks(nbytes: usize, typesize: usize, blocksize: usize) -> Result<Vec<u8>> {
    check_length(nbytes)?;
    let mut header = plain_header(nbytes, typesize, blocksize)?;
    let nblocks = nbytes.div_ceil((header.blocksize as usize).max(1));
    let table_end = EXTENDED_HEADER_LENGTH + 4 * nblocks;
    let stored = 8 * nblocks > nbytes;
    header.flags |= if stored { FLAG_MEMCPYED } else { FLAG_DONT_SPLIT };
    let cbytes = if stored { EXTENDED_HEADER_LENGTH + nbytes } else { table_end + 4 * nblocks };
    header.cbytes = u32_of(cbytes);
    let mut out = header.to_bytes().to_vec();
    if !stored {
        for nblock in 0..nblocks {
            out.extend_from_slice(&le32(table_end + 4 * nblock));
        }
    }
    out.resize(cbytes, 0); // a stream of length 0 is all zeros
    Ok(out)
}

/// Return the header of a chunk that goes through no filter and no codec.
fn plain_header(nbytes: usize, typesize: usize, blocksize: usize) -> Result<Header> {
    let options = EncodeOptions {
        codec: 0,
        codec_meta: 0,
        clevel: 5,
        typesize,
        blocksize: blocksize.min(MAX_BLOCKSIZE),
        splitmode: 2,
        filters: [0; 6],
        filters_meta: [0; 6],
        shape: None,
        use_dict: false,
        blosc1: false,
        nthreads: 1,
    };
    let params = EncodeParams::new(options, None)?;
    Ok(header_for(&options, nbytes, params.blocksize_for(nbytes)))
}
