//! Reading a byte range of a chunk's content.
//!
//! A range is cut into pieces, each of one block. Only blocks that the range intersects are decoded, straight into the
//! destination where all of a block is wanted.
//!
//! Source: docs/format/chunk.md, section "Partial reads".

use std::ops::Range;

use super::Chunk;
use super::worker::{Worker, resize, with_worker};
use crate::error::{Error, Result};
use crate::header::Body;
use crate::interrupt::{Interrupt, go_on};
use crate::user::User;

/// Uncompressed bytes and fills are cut into pieces of this size.
const PIECE: usize = 1024 * 1024;

/// What of a chunk one thread reads at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// Bytes from this one on, stored uncompressed or repeated.
    Stored(usize),
    /// A part of a block.
    Block {
        /// The block.
        nblock: usize,
        /// The first byte in it.
        from: usize,
        /// Bytes of the whole block.
        len: usize,
    },
}

impl Chunk<'_> {
    /// Decode a range of the content, in bytes, on this thread.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a range that ends behind the content; whatever is wrong with the blocks that hold it.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u8>> {
        let start = range.start as u64;
        self.expect_range(start, range.len())?;
        self.check_claims()?;
        let mut dst = Vec::new();
        resize(&mut dst, range.len())?;
        with_worker(|worker| self.read_into(start, &mut dst, worker, None, None))?;
        Ok(dst)
    }

    /// Refuse a range that ends behind the chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`].
    pub fn expect_range(&self, start: u64, length: usize) -> Result<()> {
        let nbytes = u64::from(self.header.nbytes);
        let stop = start.saturating_add(length as u64);
        if stop > nbytes {
            return Err(Error::Argument {
                name: "stop",
                expected: format!("at most the chunk's {nbytes} bytes").into(),
                found: i64::try_from(stop).unwrap_or(i64::MAX),
            });
        }
        Ok(())
    }

    /// Compare the length of the content with what the container says.
    ///
    /// # Errors
    ///
    /// [`Error::Field`].
    pub fn expect_nbytes(&self, expected: u64) -> Result<()> {
        if expected == u64::from(self.header.nbytes) {
            return Ok(());
        }
        Err(Error::Field {
            field: "nbytes",
            at: 4,
            expected: format!("{expected}, as the container says").into(),
            found: i64::from(self.header.nbytes),
        })
    }

    /// Decode the range that begins at byte `start` and has the length of `dst`, one block after the other.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the blocks that hold it; [`Error::Interrupted`].
    pub fn read_into(
        &self,
        start: u64,
        dst: &mut [u8],
        worker: &mut Worker,
        user: Option<&dyn User>,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        self.cut(start, dst, |piece, dst| {
            if outcome.is_ok() {
                outcome = go_on(interrupt, dst.len());
            }
            if outcome.is_ok() {
                outcome = self.read_piece(&piece, dst, worker, user);
            }
        })?;
        outcome
    }

    /// Cut a range into pieces, in order, each with its part of the destination.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the lengths of variable-length blocks.
    pub fn cut<'d>(&self, start: u64, mut dst: &'d mut [u8], mut each: impl FnMut(Piece, &'d mut [u8])) -> Result<()> {
        let mut at = usize::try_from(start).unwrap_or(usize::MAX);
        let mut rest = dst.len();
        let mut give = |piece, len: usize| {
            let (head, tail) = std::mem::take(&mut dst).split_at_mut(len);
            dst = tail;
            each(piece, head);
        };
        match self.header.body() {
            Body::Empty => {}
            Body::Special(_) | Body::Memcpyed => {
                while rest > 0 {
                    let step = rest.min(PIECE);
                    give(Piece::Stored(at), step);
                    at += step;
                    rest -= step;
                }
            }
            Body::Blocks => {
                while rest > 0 {
                    let nblock = at / self.blocksize;
                    let from = at % self.blocksize;
                    let len = self.block_len(nblock);
                    let step = (len - from).min(rest);
                    give(Piece::Block { nblock, from, len }, step);
                    at += step;
                    rest -= step;
                }
            }
            Body::VlBlocks => {
                let mut begin = 0;
                for (nblock, len) in self.vl_lengths()?.into_iter().enumerate() {
                    if rest == 0 {
                        break;
                    }
                    let end = begin + len;
                    if at < end {
                        let from = at - begin;
                        let step = (len - from).min(rest);
                        give(Piece::Block { nblock, from, len }, step);
                        at += step;
                        rest -= step;
                    }
                    begin = end;
                }
            }
        }
        Ok(())
    }

    /// Decode a piece, all that `dst` has room for.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with its block.
    pub fn read_piece(
        &self,
        piece: &Piece,
        dst: &mut [u8],
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        match *piece {
            _ if dst.is_empty() => Ok(()),
            Piece::Stored(from) => self.copy_stored(from, dst),
            Piece::Block { nblock, len, .. } if dst.len() == len => self.decode_block(nblock, dst, worker, user),
            Piece::Block { nblock, from, len } => self.decode_part(nblock, from, len, dst, worker, user),
        }
    }
}
