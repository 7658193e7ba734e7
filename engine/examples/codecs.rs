//! A small table of the codecs' speed and ratio on one worker.
//!
//! ```text
//! cargo run --release --example codecs [-- [--block BYTES] [--codec NAME] [--level N] [FILE...]]
//! ```
//!
//! Without files it makes three kinds of data itself. Blocks that a codec declines count as raw.
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::time::{Duration, Instant};

use superchunk_engine::codecs::{Codec, Decoder, Encoder};

/// Bytes of each made-up data set.
const SIZE: usize = 4 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut block = 128 << 10;
    let mut only = None;
    let mut levels = vec![1, 5, 9];
    let mut sets = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--block" => block = args.next().ok_or("--block needs a number")?.parse()?,
            "--codec" => only = Some(args.next().ok_or("--codec needs a name")?),
            "--level" => levels = vec![args.next().ok_or("--level needs a number")?.parse()?],
            file => sets.push((file.to_owned(), std::fs::read(file)?)),
        }
    }
    if sets.is_empty() {
        sets = made_up();
    }
    println!("data                codec   level   ratio      bytes   comp MB/s  decomp MB/s");
    for (name, data) in &sets {
        for codec in Codec::ALL {
            if only.as_ref().is_some_and(|only| only != codec.name()) {
                continue;
            }
            for &level in &levels {
                let (size, comp, decomp) = measure(codec, level, data, block)?;
                let label = name.rsplit('/').next().unwrap_or(name);
                println!(
                    "{label:<19} {:<8} {level:>4} {:>7.3} {size:>10} {comp:>11.0} {decomp:>12.0}",
                    codec.name(),
                    data.len() as f64 / size as f64,
                );
            }
        }
    }
    Ok(())
}

/// Compressed size in bytes, and the speeds both ways in MB/s: the best of some rounds.
fn measure(
    codec: Codec,
    level: u8,
    data: &[u8],
    block: usize,
) -> Result<(usize, f64, f64), Box<dyn std::error::Error>> {
    let mut encoder = Encoder::new(codec, level, None)?;
    let mut decoder = Decoder::new();
    let mut streams: Vec<Vec<u8>> = data.chunks(block).map(|b| vec![0; b.len()]).collect();
    let mut sizes = vec![None; streams.len()];
    let mut back = vec![0; data.len()];

    let comp = best(|| {
        for ((src, dst), size) in data.chunks(block).zip(&mut streams).zip(&mut sizes) {
            *size = encoder.encode(src, dst);
        }
        Ok(())
    })?;
    let decomp = best(|| {
        for ((dst, src), (size, raw)) in back.chunks_mut(block).zip(&streams).zip(sizes.iter().zip(data.chunks(block)))
        {
            match size {
                Some(size) => decoder.decode(codec.format(), &src[..*size], dst, None)?,
                None => dst.copy_from_slice(raw),
            }
        }
        Ok(())
    })?;
    assert!(back == data, "{} level {level} does not roundtrip", codec.name());
    let total = sizes.iter().zip(data.chunks(block)).map(|(size, raw)| size.unwrap_or(raw.len())).sum();
    let speed = |time: Duration| data.len() as f64 / 1e6 / time.as_secs_f64();
    Ok((total, speed(comp), speed(decomp)))
}

/// The best time of a few rounds: two at least, and then until half a second has passed.
fn best(mut round: impl FnMut() -> Result<(), &'static str>) -> Result<Duration, &'static str> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    let mut rounds = 0;
    while rounds < 2 || (begin.elapsed() < Duration::from_millis(500) && rounds < 50) {
        let start = Instant::now();
        round()?;
        best = best.min(start.elapsed());
        rounds += 1;
    }
    Ok(best)
}

/// Shuffled floats of a curve, small integers of a walk, and words.
fn made_up() -> Vec<(String, Vec<u8>)> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let floats: Vec<[u8; 8]> = (0..SIZE / 8).map(|i| (i as f64 * 1e-4).sin().to_le_bytes()).collect();
    let mut shuffled = Vec::with_capacity(SIZE);
    for block in floats.chunks(16 << 10) {
        for plane in 0..8 {
            shuffled.extend(block.iter().map(|item| item[plane]));
        }
    }
    let mut value = 0_u64;
    let walk = (0..SIZE / 4)
        .flat_map(|_| {
            value += random(3);
            value.to_le_bytes()[..4].to_vec()
        })
        .collect();
    let words = [
        "chunk", "block", "stream", "of", "the", "a", "bytes", "filter", "codec", "and", "frame", "offsets", "header",
        "trailer", "item", "special",
    ];
    let mut text = Vec::with_capacity(SIZE + 16);
    while text.len() < SIZE {
        let pick = random(16).min(random(16));
        text.extend_from_slice(words[usize::try_from(pick).unwrap_or(0)].as_bytes());
        text.push(if random(12) == 0 { b'\n' } else { b' ' });
    }
    vec![("sine f64, shuffled".to_owned(), shuffled), ("walk i32".to_owned(), walk), ("words".to_owned(), text)]
}
