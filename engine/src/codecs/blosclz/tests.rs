//! Hand-made streams for the decoder's rules.
use super::*;

fn decoded(stream: &[u8], nbytes: usize) -> Result<Vec<u8>, &'static str> {
    let mut dst = vec![0xEE; nbytes];
    decode(stream, &mut dst).map(|()| dst)
}
