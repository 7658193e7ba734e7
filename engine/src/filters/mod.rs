//! The filters.
