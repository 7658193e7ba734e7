//! Any bytes decode as a chunk or give an error.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_io::fuzzing::chunk_decode(data));
