//! Any range of any chunk is the slice of the whole, or an error.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_io::fuzzing::range_decode(data));
