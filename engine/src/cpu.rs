//! The only place that asks the CPU what it can do.
