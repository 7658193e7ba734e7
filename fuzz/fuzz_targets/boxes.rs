//! Any box and any points of any chunk are its items, or an error.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_io::fuzzing::boxes(data));
