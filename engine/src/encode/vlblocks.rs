//! Writing chunks whose blocks have lengths of their own.
//!
//! Source: docs/format/chunk.md, section "Variable-length blocks".

use std::sync::Mutex;

use super::{Job, MIN_DICT, SERIAL, Worker, check_length, format_bits, header_for, le32, u32_of, with_worker};
use crate::chunk::{MAX_DICT, resize};
use crate::codecs::{PreparedDict, train_dictionary};
use crate::cpu::Isa;
use crate::error::{Error, Result};
use crate::filters;
use crate::header::{FLAG_DONT_SPLIT, FLAG2_USEDICT, FLAG3_VLBLOCKS, VERSION_VLBLOCKS};
use crate::interrupt::{Interrupt, go_on};
use crate::limits::EXTENDED_HEADER_LENGTH;
use crate::params::EncodeParams;
use crate::pool;
use crate::user::User;

/// Compress buffers into one chunk with a variable-length block for each.
///
/// # Errors
///
/// [`Error::Argument`] for no block, an empty one, or too much data; otherwise as [`encode`].
pub fn encode_vlblocks(
    blocks: &[&[u8]],
    params: &EncodeParams,
    user: Option<&dyn User>,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<u8>> {
    if blocks.is_empty() {
        return Err(Error::Argument { name: "blocks", expected: "at least one block".into(), found: 0 });
    }
    if let Some(empty) = blocks.iter().position(|block| block.is_empty()) {
        return Err(Error::Argument {
            name: "blocks",
            expected: format!("no empty block (block {empty})").into(),
            found: 0,
        });
    }
    if params.options.filters.contains(&filters::DELTA) {
        return Err(Error::Argument {
            name: "filters",
            expected: "no DELTA with variable-length blocks".into(),
            found: filters::DELTA.into(),
        });
    }
    if params.options.blosc1 {
        let expected = "no variable-length blocks in a chunk of Blosc1".into();
        return Err(Error::Argument { name: "blosc1", expected, found: 1 });
    }
    let nbytes = blocks.iter().fold(0usize, |sum, block| sum.saturating_add(block.len()));
    let overhead = EXTENDED_HEADER_LENGTH + blocks.len().saturating_mul(8) + 4 + MAX_DICT;
    check_length(nbytes.saturating_add(overhead))?;
    let options = &params.options;
    let mut header = header_for(options, nbytes, blocks.len());
    header.version = VERSION_VLBLOCKS;
    header.blosc2_flags2 = FLAG3_VLBLOCKS;
    header.flags |= FLAG_DONT_SPLIT | format_bits(params);
    let mut job = Job {
        src: &[].as_slice(),
        reference: None,
        params,
        user,
        interrupt,
        blocksize: 0,
        dict: None,
        encoders: Mutex::default(),
        isa: Isa::detect(),
    };
    let mut dict = None;
    if options.use_dict && options.clevel > 0 && blocks.len() >= 8 {
        let most = MAX_DICT.min(nbytes / 20);
        if most >= MIN_DICT {
            let sizes: Vec<usize> = blocks.iter().map(|block| block.len()).collect();
            dict = train_dictionary(job.codec(), &blocks.concat(), &sizes, most);
        }
    }
    if let Some(bytes) = &dict {
        job.dict = PreparedDict::new(job.codec(), options.clevel, bytes).ok();
    }
    let table_end = EXTENDED_HEADER_LENGTH + 4 * blocks.len();
    let mut out = vec![0; table_end];
    if let (Some(bytes), Some(_)) = (&dict, &job.dict) {
        header.blosc2_flags |= FLAG2_USEDICT;
        out.extend_from_slice(&le32(bytes.len()));
        out.extend_from_slice(bytes);
    }
    let mut coded: Vec<Vec<u8>> = vec![Vec::new(); blocks.len()];
    let nthreads = if user.is_some() || nbytes <= SERIAL { 1 } else { options.nthreads.max(1) };
    let tasks = blocks.iter().zip(&mut coded).collect();
    pool::run(nthreads, tasks, |_, (block, coded): (&&[u8], &mut Vec<u8>)| -> Result<()> {
        go_on(interrupt, block.len())?;
        with_worker(|worker| {
            let Worker { filters, encoder, output, .. } = worker;
            let filters_of_user = user.map(User::filters);
            let filtered = params.pipeline.forward(job.isa, block, None, filters, filters_of_user)?;
            let out = resize(output, filtered.len())?;
            let length = if options.clevel == 0 {
                None
            } else {
                job.encode_coded(filtered, None, &mut out[..filtered.len() - 1], encoder)?
            };
            coded.extend_from_slice(&le32(filtered.len()));
            coded.extend_from_slice(length.map_or(filtered, |length| &out[..length]));
            Ok(())
        })
    })?;
    for (nblock, block) in coded.iter().enumerate() {
        let at = EXTENDED_HEADER_LENGTH + 4 * nblock;
        let start = le32(out.len());
        out[at..at + 4].copy_from_slice(&start);
        out.extend_from_slice(block);
    }
    header.cbytes = u32_of(out.len());
    out[..EXTENDED_HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    Ok(out)
}
