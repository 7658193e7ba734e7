//! A seal proves its chunk and nothing else, whatever the bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_io::fuzzing::seals(data));
