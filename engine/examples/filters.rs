//! A table of the filters' speed on one thread, for every instruction set of this machine.
//!
//! ```text
//! cargo run --release --example filters [-- BLOCK_BYTES]
//! ```
//!
//! Blocks are of 128 KB unless told otherwise, and stay in the cache. One pair of figures is GB/s of plain bytes,
//! filtering and undoing; the best of some rounds.
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::time::{Duration, Instant};

use superchunk_engine::cpu::Isa;
use superchunk_engine::filters::{self, BitshuffleRule, Pipeline, Scratch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let length = std::env::args().nth(1).map_or(Ok(128 << 10), |text| text.parse())?;
    let block: Vec<u8> = (0..length).map(|n: usize| (n.wrapping_mul(n) >> 7).to_le_bytes()[0]).collect();
    print!("{:<12} typesize", "filter");
    for isa in Isa::available() {
        print!("{:>18}", isa.name());
    }
    println!();
    let rows: [(u8, &[u8]); 7] = [
        (filters::SHUFFLE, &[2, 4, 8, 16, 3, 6, 12, 24, 40]),
        (filters::BITSHUFFLE, &[1, 2, 4, 8, 16, 3, 12, 24]),
        (filters::DELTA, &[1, 2, 4, 8]),
        (filters::BYTEDELTA, &[1, 4, 8]),
        (filters::BYTEDELTA_OLD, &[8]),
        (filters::TRUNC_PREC, &[4, 8]),
        (filters::INT_TRUNC, &[1, 2]),
    ];
    for (id, typesizes) in rows {
        for &typesize in typesizes {
            print!("{:<12} {typesize:>8}", filters::name_of_id(id));
            for isa in Isa::available() {
                let (forward, backward) = measure(isa, id, typesize, &block)?;
                print!("{:>18}", format!("{forward} {backward}"));
            }
            println!();
        }
    }
    Ok(())
}

/// Speeds both ways, "-" for a way that there is not.
fn measure(isa: Isa, id: u8, typesize: u8, block: &[u8]) -> Result<(String, String), superchunk_engine::Error> {
    let (mut ids, mut metas) = ([0; 6], [0; 6]);
    ids[5] = id;
    metas[5] = if id == filters::TRUNC_PREC || id == filters::INT_TRUNC { 5 } else { 0 };
    let typesize = usize::from(typesize);
    let mut scratch = Scratch::default();
    let mut dst = vec![0; block.len()];
    let forward = match Pipeline::for_writing(ids, metas, typesize, None, None, BitshuffleRule::Current, None) {
        Ok(pipeline) => speed(block.len(), || pipeline.forward(isa, block, None, &mut scratch, None).map(<[u8]>::len))?,
        Err(_) => "-".into(),
    };
    let rule = filters::BitshuffleRule::Current;
    let pipeline = Pipeline::for_reading(ids, metas, typesize, None, None, rule, None)?;
    let backward = if pipeline.backward_is_identity() {
        "-".into()
    } else {
        speed(block.len(), || pipeline.backward(isa, block, &mut dst, None, &mut scratch, None).map(|()| 0))?
    };
    Ok((forward, backward))
}

/// GB/s of `work`, which handles `length` bytes at a time.
fn speed<E>(length: usize, mut work: impl FnMut() -> Result<usize, E>) -> Result<String, E> {
    let mut best = Duration::MAX;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..8 {
            std::hint::black_box(work()?);
        }
        best = best.min(start.elapsed());
    }
    Ok(format!("{:.1}", 8.0 * length as f64 / best.as_nanos() as f64))
}
