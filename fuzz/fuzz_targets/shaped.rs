//! Any content comes back that goes by the shape of its blocks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_io::fuzzing::shaped(data));
