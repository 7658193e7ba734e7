//! Any content comes back, compressed in any way.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_io::fuzzing::roundtrip(data));
