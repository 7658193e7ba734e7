//! Any bytes decode as NDLZ or give an error.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_engine::fuzzing::ndlz(data));
