//! Codecs and filters that the caller brings.

use crate::error::Result;
use crate::filters::UserFilter;

/// A set of codecs and filters with ids of their own.
pub trait User: Sync {
    /// Whether there is a codec of this id.
    fn has_codec(&self, id: u8) -> bool;
    /// Compress `src` into `dst` and return the bytes written, 0 to decline.
    ///
    /// # Errors
    ///
    /// [`Error::User`](crate::Error::User) when the codec fails.
    fn encode(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<usize>;
    /// Decompress `src` into all of `dst`.
    ///
    /// # Errors
    ///
    /// [`Error::User`](crate::Error::User) when the codec fails or fills less than `dst`.
    fn decode(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<()>;
    /// The filters of the set.
    fn filters(&self) -> &dyn UserFilter;
}
