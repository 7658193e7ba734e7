//! Any bytes decode as BloscLZ or give an error.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| superchunk_engine::fuzzing::blosclz(data));
