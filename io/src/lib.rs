//! Reading many chunks, wherever they are.
//!
//! `superchunk-engine` turns the bytes of one chunk into other bytes. This crate brings those bytes: from memory, from
//! ranges of open files, from files that are opened by name. It spreads requests over threads ([`read`], [`boxes`]),
//! notices that a file was changed ([`watch`]), keeps what small reads need again ([`cache`]), and computes the checksums
//! of chunks and frames ([`seal`]). It knows nothing of Python.
//!
//! ```text
//! cache              small reads of a watched file
//! boxes  read  seal  many chunks in one call
//! watch  source      where bytes are, and whether they still are the same
//! files  range       calls of the system
//! ```

pub mod boxes;
pub mod cache;
pub mod error;
pub mod files;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod interrupts;
pub mod memory;
pub mod range;
pub mod read;
pub mod seal;
pub mod source;
#[cfg(test)]
#[path = "../../engine/src/testing.rs"]
mod testing;
pub mod watch;

pub use error::{Error, Result};
