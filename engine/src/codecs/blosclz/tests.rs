//! The fast encoder and decoder against simple ones that follow the format page word by word, and
//! the page's examples.

use proptest::prelude::*;

use super::probe::Probe;
use super::*;
use crate::testing::noise;

/// The decoder of section 7.1, a byte at a time; `None` for any damage.
fn plain_decode(src: &[u8], nbytes: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut i = 1;
    let mut control = usize::from(*src.first()? & 31);
    loop {
        if control < 32 {
            let run = src.get(i..i + control + 1)?;
            out.extend_from_slice(run);
            i += run.len();
            if out.len() > nbytes {
                return None;
            }
        } else {
            let mut length = control >> 5;
            let left = |i: usize| src.len() - i;
            if length < 7 {
                length += 2;
            } else {
                length = 9;
                loop {
                    if left(i) < 2 {
                        return None;
                    }
                    let byte = usize::from(src[i]);
                    i += 1;
                    length += byte;
                    if byte != 255 {
                        break;
                    }
                }
            }
            if left(i) < 1 || control >> 5 < 7 && left(i) < 2 {
                return None;
            }
            let low = usize::from(src[i]);
            i += 1;
            let mut distance = (control & 31) * 256 + low + 1;
            if control & 31 == 31 && low == 255 {
                if left(i) < 2 {
                    return None;
                }
                distance = usize::from(src[i]) * 256 + usize::from(src[i + 1]) + 8192;
                i += 2;
            }
            if out.len() + length > nbytes || distance > out.len() {
                return None;
            }
            if i == src.len() {
                break;
            }
            for _ in 0..length {
                out.push(out[out.len() - distance]);
            }
        }
        if i == src.len() {
            break;
        }
        control = usize::from(src[i]);
        i += 1;
    }
    (out.len() == nbytes).then_some(out)
}

fn decoded(stream: &[u8], nbytes: usize) -> Option<Vec<u8>> {
    let mut dst = vec![0xEE; nbytes];
    decode(stream, &mut dst).ok().map(|()| dst)
}

#[test]
fn the_example_of_the_format_page_decodes() {
    let stream = [0x23, 0x61, 0x62, 0x63, 0x64, 0xE0, 0x54, 0x03, 0x02, 0x62, 0x63, 0x64];
    assert_eq!(decoded(&stream, 100), Some(b"abcd".repeat(25)));
    let mut coded = vec![0; 100];
    let n = Encoder::new(5).encode(1, &b"abcd".repeat(25), &mut coded).unwrap();
    assert!(n <= stream.len());
    assert_eq!(decoded(&coded[..n], 100), Some(b"abcd".repeat(25)));
}

#[test]
fn the_far_match_of_the_format_page_decodes() {
    let head: Vec<u8> = (0..10_208).map(|i| byte_of(i * i / 128 % 256)).collect();
    let mut stream = Vec::new();
    for run in head.chunks(32) {
        stream.push(u8::try_from(run.len() - 1).unwrap());
        stream.extend_from_slice(run);
    }
    stream.extend([0xFF, 0x1F, 0xFF, 0x07, 0xD8, 0x00, b'!']);
    let mut expected = head.clone();
    let start = head.len() - 10_200;
    expected.extend_from_slice(&head[start..start + 40]);
    expected.push(b'!');
    assert_eq!(decoded(&stream, expected.len()), Some(expected));
}

#[test]
fn damaged_streams_are_refused_with_their_reason() {
    let reason = |stream: &[u8], nbytes: usize| {
        let mut dst = vec![0; nbytes];
        decode(stream, &mut dst).unwrap_err()
    };
    assert!(reason(&[], 4).contains("empty"));
    assert!(reason(&[3, 1, 2, 3], 4).contains("past the end of the stream"));
    assert!(reason(&[3, 1, 2, 3, 4], 3).contains("more bytes"));
    assert!(reason(&[3, 1, 2, 3, 4], 5).contains("fewer bytes"));
    assert!(reason(&[0, 1, 0x20, 1, 0, 9], 5).contains("before the first byte"));
    // A match at the very end is dropped by the format.
    assert!(reason(&[0, 1, 0x20, 0], 4).contains("right after a match"));
    assert!(reason(&[0, 1, 0xE0, 255, 255], 4).contains("more bytes"));
    assert!(reason(&[0, 1, 0xE0, 255], 400).contains("inside"));
    assert!(reason(&[0, 1, 0x3F, 255, 0], 400).contains("inside"));
}

#[test]
fn every_short_distance_and_length_repeats_its_pattern() {
    for distance in 1..=70_usize {
        for length in (3..=80).chain([300]) {
            let head: Vec<u8> = (0..distance).map(|i| byte_of((i * 7 + 1) % 251)).collect();
            let mut stream = Vec::new();
            for run in head.chunks(32) {
                stream.push(byte_of(run.len() - 1));
                stream.extend_from_slice(run);
            }
            let gain = length - 2;
            stream.push(byte_of(gain.min(7) << 5));
            if gain >= 7 {
                stream.extend(vec![255; (gain - 7) / 255]);
                stream.push(byte_of((gain - 7) % 255));
            }
            stream.push(byte_of(distance - 1));
            for tail in [1, 2, 7, 20, 31, 32, 40] {
                let mut stream = stream.clone();
                for run in vec![0xAA; tail].chunks(32) {
                    stream.push(byte_of(run.len() - 1));
                    stream.extend_from_slice(run);
                }
                let nbytes = distance + length + tail;
                let expected = plain_decode(&stream, nbytes);
                assert!(expected.is_some());
                assert_eq!(decoded(&stream, nbytes), expected);
                for part in [distance + 1, distance + length / 2, distance + length] {
                    let mut prefix = vec![0xEE; part];
                    assert_eq!(decode_prefix(&stream, &mut prefix, nbytes), Ok(()));
                    assert_eq!(Some(&prefix[..]), expected.as_ref().map(|e| &e[..part]));
                }
            }
        }
    }
}

/// The probe as the format page describes it, one step after the other.
fn plain_probe(src: &[u8], clevel: u8) -> bool {
    let (bits, part, threshold) = match clevel {
        1 => (12, 8, 2.0),
        2 => (13, 4, 1.5),
        3 => (14, 4, 1.2),
        4..=6 => (14, 2, 1.2),
        7 => (14, 1, 1.15),
        8 => (14, 1, 1.1),
        _ => (14, 1, 1.0),
    };
    let region = src.len() / part;
    let window = &src[src.len() - region..][..region.min(1 << bits)];
    let word = |at: usize| u32::from_le_bytes(window[at..at + 4].try_into().unwrap());
    let hash = |at: usize| (word(at).wrapping_mul(2_654_435_761) >> (32 - bits)) as usize;
    let mut table = vec![0; 1 << bits];
    let (mut at, mut cost, mut counter) = (0, 5, 4);
    while at + TAIL < window.len() {
        let candidate = std::mem::replace(&mut table[hash(at)], at);
        let distance = at - candidate;
        let mut length = 0;
        if distance > 0 && word(at) == word(candidate) {
            let differing = (at + 4..window.len()).find(|&x| window[x] != window[x - distance]).unwrap_or(window.len());
            length = ((differing + 1).min(window.len() - 1) - 4).saturating_sub(at);
        }
        if length < 4 {
            cost += 1;
            counter += 1;
            if counter == 32 {
                (cost, counter) = (cost + 1, 0);
            }
            at += 1;
            continue;
        }
        cost += if distance - 1 < 8191 { 3 } else { 5 };
        cost += i32::try_from(extensions(length)).unwrap();
        cost -= i32::from(counter == 0);
        counter = 0;
        table[hash(at + length)] = at + length;
        at += length + 2;
    }
    f64::from(u32::try_from(at).unwrap()) / f64::from(cost) >= threshold
}

fn byte_of(value: usize) -> u8 {
    u8::try_from(value).unwrap()
}

/// Bytes with repeats near and far, runs, and noise.
fn compressible(max: usize) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (any::<u8>(), 1_usize..600).prop_map(|(b, n)| vec![b; n]),
        prop::collection::vec(any::<u8>(), 1..200),
        prop::collection::vec(0_u8..3, 1..400),
        (prop::collection::vec(any::<u8>(), 1..60), 1_usize..20).prop_map(|(p, n)| p.repeat(n)),
    ];
    prop::collection::vec(piece, 1..40).prop_flat_map(move |pieces| {
        prop::collection::vec(any::<prop::sample::Index>(), 1..400).prop_map(move |picks| {
            let mut all = Vec::new();
            for pick in picks {
                if all.len() > max {
                    break;
                }
                all.extend_from_slice(&pieces[pick.index(pieces.len())]);
            }
            all.truncate(max);
            all
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_the_encoder_writes_is_read_by_the_plain_decoder_and_does_not_depend_on_what_came_before(
        src in compressible(100_000),
        clevel in 1_u8..10,
        cut in 0_usize..300,
        other in compressible(80_000),
    ) {
        let mut encoder = Encoder::new(clevel);
        encoder.encode(1, &other, &mut vec![0; other.len()]);
        let mut whole = vec![0; src.len()];
        let length = Encoder::new(clevel).encode(1, &src, &mut whole);
        whole.truncate(length.unwrap_or(0));
        if length.is_some() {
            prop_assert_eq!(plain_decode(&whole, src.len()), Some(src.clone()));
        }
        // Where it does not fit, or hardly, it is declined or the same.
        for capacity in [src.len(), length.map_or(src.len(), |length| (length + 40).saturating_sub(cut))] {
            let mut dst = vec![0; capacity];
            let again = encoder.encode(1, &src, &mut dst);
            prop_assert!(again == length || again.is_none() && capacity < src.len());
            prop_assert!(again.is_none_or(|length| dst[..length] == whole));
        }
    }

    #[test]
    fn the_probe_decides_as_the_format_page_says(src in compressible(60_000), clevel in 1_u8..10) {
        let mut probe = Probe::new(clevel);
        let window = probe.window(&src).to_vec();
        prop_assert_eq!(probe.pays(&window), plain_probe(&src, clevel));
    }

    #[test]
    fn the_decoder_agrees_with_the_plain_one_on_damage(
        src in compressible(20_000),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 0_usize..3,
        nbytes_off in -1_isize..2,
    ) {
        let mut stream = vec![0; src.len()];
        let Some(n) = Encoder::new(9).encode(1, &src, &mut stream) else { return Ok(()) };
        stream.truncate(n - cut);
        for (at, byte) in edits {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        let nbytes = src.len().saturating_add_signed(nbytes_off);
        let expected = plain_decode(&stream, nbytes);
        if let Some(whole) = &expected {
            let mut prefix = vec![0; nbytes / 3];
            prop_assert_eq!(decode_prefix(&stream, &mut prefix, nbytes), Ok(()));
            prop_assert_eq!(&prefix[..], &whole[..nbytes / 3]);
        }
        prop_assert_eq!(decoded(&stream, nbytes), expected);
    }

    #[test]
    fn the_decoder_agrees_with_the_plain_one_on_noise(
        stream in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..40], 0..300),
        nbytes in 0_usize..2000,
    ) {
        prop_assert_eq!(decoded(&stream, nbytes), plain_decode(&stream, nbytes));
    }
}

#[test]
fn the_table_is_cleared_when_positions_run_out() {
    let src = b"superchunk, superchunk, superchunk; ".repeat(2000);
    let mut expected = vec![0; src.len()];
    let n = Encoder::new(5).encode(1, &src, &mut expected);
    assert!(n.is_some());
    let mut encoder = Encoder::new(5);
    // Each stream is parsed twice.
    encoder.base = u32::MAX - 160_000;
    encoder.encode(1, &src, &mut vec![0; src.len()]);
    assert!(encoder.base > u32::MAX - 80_000);
    let mut dst = vec![0; src.len()];
    assert_eq!(encoder.encode(1, &src, &mut dst), n);
    assert!(encoder.base < 200_000);
    assert_eq!(dst[..n.unwrap()], expected[..n.unwrap()]);
}

#[test]
fn noise_is_declined_and_matches_are_extended_backwards() {
    let noise = noise(100_000, 7);
    for clevel in 1..=9 {
        let mut dst = vec![0; noise.len()];
        assert_eq!(Encoder::new(clevel).encode(1, &noise, &mut dst), None);
        // The second half repeats the first: all but the control bytes of that is one match, wherever it was noticed.
        let twice = noise[..4000].repeat(2);
        if let Some(n) = Encoder::new(clevel).encode(1, &twice, &mut dst) {
            assert!(n < 4000 + 4000 / 32 + 40, "{n}");
        }
    }
}
