//! The shape of a block of an array, which some filters and codecs go by.
//!
//! A chunk does not say it: it is in a metalayer of the container (`b2nd`, in old frames `caterva`), so it has
//! nothing to do with the chunk's own sizes until somebody has compared them.
//!
//! Source: docs/format/filters.md, section "Registered filters".

use std::fmt;

use crate::error::{Error, Result};
use crate::limits::{MAX_BLOCKSIZE, MAX_DIMS};

/// Items of a block along each dimension; 0 dimensions are one item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BlockShape {
    dims: [usize; MAX_DIMS],
    ndim: usize,
    items: usize,
}

impl BlockShape {
    /// Check that `dims` can be a block's.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for more than [`MAX_DIMS`] dimensions, an empty one, and more items than the largest
    /// block has bytes.
    pub fn new(dims: &[usize]) -> Result<Self> {
        let bad = |expected: String, found: usize| Error::Argument {
            name: "blockshape",
            expected: expected.into(),
            found: i64::try_from(found).unwrap_or(i64::MAX),
        };
        let ndim = dims.len();
        if ndim > MAX_DIMS {
            return Err(bad(format!("at most {MAX_DIMS} dimensions"), ndim));
        }
        let mut shape = Self { dims: [1; MAX_DIMS], ndim, items: 1 };
        for (n, &items) in dims.iter().enumerate() {
            if items == 0 {
                return Err(bad(format!("at least 1 item along dimension {n}"), items));
            }
            shape.dims[n] = items;
            shape.items = shape.items.saturating_mul(items);
        }
        if shape.items > MAX_BLOCKSIZE {
            return Err(bad(format!("at most {MAX_BLOCKSIZE} items in a block"), shape.items));
        }
        Ok(shape)
    }

    /// Items along each dimension, at least 1 each.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.ndim]
    }

    /// Items of a block.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }
}

impl fmt::Display for BlockShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (n, items) in self.dims().iter().enumerate() {
            write!(f, "{}{items}", if n > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.ndim == 1 { ",)" } else { ")" })
    }
}

impl fmt::Debug for BlockShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_knows_its_items_and_its_text() {
        let shape = BlockShape::new(&[3, 1, 7]).unwrap();
        assert_eq!((shape.dims(), shape.items()), ([3, 1, 7].as_slice(), 21));
        assert_eq!(shape.to_string(), "(3, 1, 7)");
        assert_eq!(BlockShape::new(&[5]).unwrap().to_string(), "(5,)");
        let scalar = BlockShape::new(&[]).unwrap();
        assert_eq!((scalar.dims().len(), scalar.items(), scalar.to_string().as_str()), (0, 1, "()"));
        assert_eq!(BlockShape::new(&[1; 16]).unwrap().items(), 1);
    }

    #[test]
    fn shapes_that_wrap_around_are_refused() {
        for dims in [&[0][..], &[4, 0], &[65536, 65536], &[usize::MAX, 2], &[1 << 32, 1 << 32, 1], &[1; 17]] {
            assert!(matches!(BlockShape::new(dims), Err(Error::Argument { name: "blockshape", .. })), "{dims:?}");
        }
        assert!(BlockShape::new(&[MAX_BLOCKSIZE]).is_ok());
        assert!(BlockShape::new(&[MAX_BLOCKSIZE + 1]).is_err());
    }
}
