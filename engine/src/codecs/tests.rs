//! Promises that hold for every codec: roundtrips, exact bounds, damage, prefixes, dictionaries.

use proptest::prelude::*;

use super::*;

/// Numbers, repeats and noise from a seed, deterministic.
fn sample(len: usize, kind: u8, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::with_capacity(len + 8);
    let mut value = 1000_u32;
    while bytes.len() < len {
        match kind % 4 {
            0 => {
                value = value.wrapping_add((random() % 5) as u32);
                bytes.extend(value.to_le_bytes());
            }
            1 => bytes.extend(vec![(random() % 3) as u8; 1 + (random() % 90) as usize]),
            2 => bytes.extend(random().to_le_bytes()),
            _ => bytes.extend([&b"chunk "[..], b"block ", b"stream ", b"of bytes\n"][(random() % 4) as usize]),
        }
    }
    bytes.truncate(len);
    bytes
}

fn encoded(encoder: &mut Encoder, src: &[u8], capacity: usize) -> Option<Vec<u8>> {
    // A guard behind the output shows writes past it.
    let mut dst = vec![0xC7; capacity + 64];
    let (output, guard) = dst.split_at_mut(capacity);
    let n = encoder.encode(src, output);
    assert!(guard.iter().all(|&b| b == 0xC7), "written past the end");
    n.map(|n| {
        assert!(n > 0 && n <= capacity);
        dst.truncate(n);
        dst
    })
}

fn decoded(codec: Codec, src: &[u8], nbytes: usize, dict: Option<&DecodeDict>) -> Verdict<Vec<u8>> {
    let mut dst = vec![0xC7; nbytes + 64];
    let (output, guard) = dst.split_at_mut(nbytes);
    let verdict = Decoder::new().decode(codec.format(), src, output, dict);
    assert!(guard.iter().all(|&b| b == 0xC7), "written past the end");
    dst.truncate(nbytes);
    verdict.map(|()| dst)
}

#[test]
fn ids_and_formats_go_one_way() {
    for codec in Codec::ALL {
        assert_eq!(Codec::from_id(codec.id()), Ok(codec));
        assert_eq!(CodecFormat::from_flags(codec.format().flag_bits() | 0x1F), Ok(codec.format()));
        assert_eq!(codec.format().require_built_in(99), Ok(()));
        assert!(!library_version(codec).1.is_empty());
    }
    let pairs: Vec<(u8, u8)> = Codec::ALL.iter().map(|c| (c.id(), c.format() as u8)).collect();
    assert_eq!(pairs, [(0, 0), (1, 1), (2, 1), (4, 3), (5, 4)]);
}

#[test]
fn what_is_not_built_in_is_named() {
    let named = |id, name| Error::Unsupported { what: "codec", id, name };
    assert_eq!(Codec::from_id(3), Err(named(3, "snappy")));
    assert_eq!(Codec::from_id(33), Err(named(33, "zfp accuracy")));
    assert_eq!(Codec::from_id(200), Err(named(200, "user")));
    assert_eq!(Codec::from_id(100), Err(named(100, "unknown")));
    assert_eq!(CodecFormat::from_flags(0xA0), Err(named(6, "lizard")));
    assert_eq!(CodecFormat::from_flags(0xE0), Err(named(7, "unknown")));
    assert_eq!(CodecFormat::Snappy.require_built_in(0), Err(named(3, "snappy")));
    assert_eq!(CodecFormat::Registered.require_built_in(33), Err(named(33, "zfp accuracy")));
    assert_eq!(CodecFormat::Registered.require_built_in(5), Err(named(5, "unknown")));
}

#[test]
fn libdeflate_is_of_the_version_we_say() {
    let lock = include_str!("../../../Cargo.lock");
    let entry = lock.split("[[package]]").find(|p| p.contains("name = \"libdeflate-sys\""));
    let wanted = format!("version = \"{}.", zlib::LIBDEFLATE_VERSION);
    assert!(entry.unwrap().contains(&wanted));
}

#[test]
fn arguments_out_of_range_are_refused() {
    assert!(matches!(Encoder::new(Codec::Zstd, 10, None), Err(Error::Argument { .. })));
    for codec in [Codec::BloscLz, Codec::Zlib] {
        assert!(matches!(PreparedDict::new(codec, 5, b"abc"), Err(Error::Argument { .. })));
        assert_eq!(train_dictionary(codec, b"abc", &[3], 100), None);
    }
    assert!(matches!(PreparedDict::new(Codec::Lz4, 5, b""), Err(Error::Argument { .. })));
    let dict = PreparedDict::new(Codec::Lz4Hc, 5, b"some history").unwrap();
    assert!(Encoder::new(Codec::Lz4Hc, 5, Some(&dict)).is_ok());
    for (codec, clevel) in [(Codec::Lz4, 5), (Codec::Lz4Hc, 6), (Codec::Zlib, 5)] {
        let encoder = Encoder::new(codec, clevel, Some(&dict));
        assert!(matches!(encoder, Err(Error::Argument { .. })));
    }
    assert_eq!(train_dictionary(Codec::Lz4, b"abc", &[4], 100), None);
    assert_eq!(train_dictionary(Codec::Lz4, b"abc", &[usize::MAX, 4], 100), None);
    assert_eq!(train_dictionary(Codec::Zstd, b"abc", &[3], 100), None);
}

#[test]
fn level_zero_and_empty_streams_are_declined() {
    let src = sample(5000, 1, 1);
    for codec in Codec::ALL {
        let mut dst = vec![0; 6000];
        assert_eq!(Encoder::new(codec, 0, None).unwrap().encode(&src, &mut dst), None);
        let mut encoder = Encoder::new(codec, 5, None).unwrap();
        assert_eq!(encoder.encode(&[], &mut dst), None);
        assert_eq!(encoder.encode(&src, &mut []), None);
    }
}

#[test]
fn every_level_compresses_and_roundtrips() {
    for codec in Codec::ALL {
        for clevel in 1..=9 {
            let src = sample(100_000, 1, 7);
            let mut encoder = Encoder::new(codec, clevel, None).unwrap();
            assert_eq!((encoder.codec(), encoder.clevel()), (codec, clevel));
            let stream = encoded(&mut encoder, &src, src.len()).unwrap();
            assert!(stream.len() < src.len() / 5);
            assert_eq!(decoded(codec, &stream, src.len(), None), Ok(src));
        }
    }
}

#[test]
fn used_encoders_write_what_fresh_ones_write() {
    let dictionary = sample(4000, 3, 5);
    for codec in Codec::ALL {
        for with_dict in [false, true] {
            if with_dict && !codec.takes_dictionary() {
                continue;
            }
            for clevel in [1, 5, 9] {
                let dict = with_dict.then(|| PreparedDict::new(codec, clevel, &dictionary).unwrap());
                let mut used = Encoder::new(codec, clevel, dict.as_ref()).unwrap();
                for round in 0..60_u64 {
                    let len = [300, 3000, 70_000, 20, 9000][(round % 5) as usize];
                    let src = sample(len, (round % 4) as u8, round * 77 + 1);
                    // Every seventh does not fit and leaves the state as it may.
                    let capacity = if round % 7 == 0 { 20 } else { len };
                    let mut fresh = Encoder::new(codec, clevel, dict.as_ref()).unwrap();
                    let expected = encoded(&mut fresh, &src, capacity);
                    assert_eq!(encoded(&mut used, &src, capacity), expected, "{codec:?} {clevel}");
                }
            }
        }
    }
}

#[test]
fn an_encoder_that_found_no_room_writes_what_a_fresh_one_writes() {
    let (noise, text) = (crate::testing::noise(70_000, 1), sample(70_000, 3, 9));
    for codec in [Codec::Lz4, Codec::Lz4Hc] {
        for clevel in 1..=9 {
            let mut used = Encoder::new(codec, clevel, None).unwrap();
            let dict = PreparedDict::new(codec, clevel, &text[..4000]).unwrap();
            let mut used_dict = Encoder::new(codec, clevel, Some(&dict)).unwrap();
            // What fails leaves its table behind: of another input of the same and of other lengths.
            for failing in [&noise[..], &noise[..5000], &noise[..100]] {
                for src in [&text[..], &text[..3000], &noise[..5000]] {
                    let capacity = src.len() - src.len() / 100;
                    assert_eq!(encoded(&mut used, failing, failing.len() / 2), None);
                    let mut fresh = Encoder::new(codec, clevel, None).unwrap();
                    assert_eq!(
                        encoded(&mut used, src, capacity),
                        encoded(&mut fresh, src, capacity),
                        "{codec:?} {clevel}"
                    );
                    assert_eq!(encoded(&mut used_dict, failing, failing.len() / 2), None);
                    let mut fresh = Encoder::new(codec, clevel, Some(&dict)).unwrap();
                    assert_eq!(
                        encoded(&mut used_dict, src, capacity),
                        encoded(&mut fresh, src, capacity),
                        "{codec:?} {clevel}"
                    );
                }
            }
        }
    }
}

#[test]
fn zlib_reads_exactly_a_zlib_stream() {
    let src = sample(3000, 3, 9);
    let mut encoder = Encoder::new(Codec::Zlib, 6, None).unwrap();
    let stream = encoded(&mut encoder, &src, 3000).unwrap();
    let n = stream.len();
    let mut trailed = stream.clone();
    trailed.extend(b"whatever");
    assert_eq!(decoded(Codec::Zlib, &trailed, 3000, None), Ok(src.clone()));
    let mut checksum = stream.clone();
    checksum[n - 1] ^= 1;
    assert!(decoded(Codec::Zlib, &checksum, 3000, None).is_err());
    assert!(decoded(Codec::Zlib, &stream[2..n - 4], 3000, None).is_err(), "raw deflate");
    assert!(decoded(Codec::Zlib, &stream[..n - 1], 3000, None).is_err());
    assert!(decoded(Codec::Zlib, &stream, 2999, None).is_err());
    assert!(decoded(Codec::Zlib, &stream, 3001, None).is_err());
}

#[test]
fn lz4_refuses_trailing_bytes() {
    let src = sample(3000, 3, 9);
    let mut encoder = Encoder::new(Codec::Lz4, 6, None).unwrap();
    let mut stream = encoded(&mut encoder, &src, 3000).unwrap();
    stream.push(0);
    assert!(decoded(Codec::Lz4, &stream, 3000, None).is_err());
    assert!(decoded(Codec::Lz4, &[], 10, None).is_err());
}

#[test]
fn zstd_reads_all_kinds_of_frames_and_nothing_else() {
    let src = sample(6000, 3, 9);
    let mut encoder = Encoder::new(Codec::Zstd, 3, None).unwrap();
    let first = encoded(&mut encoder, &src[..2000], 2000).unwrap();
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    context.set_parameter(zstd_safe::CParameter::ContentSizeFlag(false)).unwrap();
    let mut second = Vec::with_capacity(5000);
    context.compress2(&mut second, &src[2000..]).unwrap();
    let skippable = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let stream = [&skippable[..], &first, &skippable, &second].concat();
    assert_eq!(decoded(Codec::Zstd, &stream, 6000, None), Ok(src));
    let garbage = [&stream[..], &[0]].concat();
    assert!(decoded(Codec::Zstd, &garbage, 6000, None).is_err());
    let mut checksum = stream.clone();
    *checksum.last_mut().unwrap() ^= 1;
    assert!(decoded(Codec::Zstd, &checksum, 6000, None).is_err());
    assert!(decoded(Codec::Zstd, &stream, 5999, None).is_err());
    assert!(decoded(Codec::Zstd, &stream, 6001, None).is_err());
}

#[test]
fn zstd_writes_content_size_and_no_checksum() {
    let src = sample(6000, 3, 9);
    let mut encoder = Encoder::new(Codec::Zstd, 5, None).unwrap();
    let stream = encoded(&mut encoder, &src, 6000).unwrap();
    // Frame header descriptor: single segment, a content size of two bytes, nothing else.
    assert_eq!(stream[4], 0b0110_0000);
}

#[test]
fn dictionaries_roundtrip_and_gain() {
    for codec in [Codec::Lz4, Codec::Lz4Hc, Codec::Zstd] {
        let samples: Vec<Vec<u8>> = (0..200).map(|i| sample(400, 3, i * 31 + 3)).collect();
        let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
        let bytes = train_dictionary(codec, &samples.concat(), &sizes, 2000).unwrap();
        assert!(!bytes.is_empty() && bytes.len() <= 2000);
        let decode_dict = DecodeDict::new(&bytes);
        for clevel in 1..=9 {
            let dict = PreparedDict::new(codec, clevel, &bytes).unwrap();
            let mut with = Encoder::new(codec, clevel, Some(&dict)).unwrap();
            let mut without = Encoder::new(codec, clevel, None).unwrap();
            let mut sizes = [0, 0];
            for src in &samples[..50] {
                let stream = encoded(&mut with, src, src.len()).unwrap();
                let back = decoded(codec, &stream, src.len(), Some(&decode_dict));
                assert_eq!(back.as_ref(), Ok(src));
                assert_ne!(decoded(codec, &stream, src.len(), None), Ok(src.clone()));
                sizes[0] += stream.len();
                sizes[1] += encoded(&mut without, src, src.len()).map_or(src.len(), |s| s.len());
            }
            assert!(sizes[0] < sizes[1], "{codec:?} {clevel}: {sizes:?}");
            for len in [5000, 70_000] {
                let src = sample(len, 3, 99);
                let stream = encoded(&mut with, &src, len).unwrap();
                assert_eq!(decoded(codec, &stream, len, Some(&decode_dict)), Ok(src));
            }
        }
    }
}

#[test]
fn zstd_refuses_another_dictionary() {
    let make = |seed: u64| {
        let samples: Vec<Vec<u8>> = (0..200).map(|i| sample(400, 3, i * 31 + seed)).collect();
        let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
        train_dictionary(Codec::Zstd, &samples.concat(), &sizes, 2000).unwrap()
    };
    let (ours, other) = (make(3), make(7_000_003));
    assert_ne!(ours, other);
    let src = sample(900, 3, 4);
    let dict = PreparedDict::new(Codec::Zstd, 5, &ours).unwrap();
    let mut encoder = Encoder::new(Codec::Zstd, 5, Some(&dict)).unwrap();
    let stream = encoded(&mut encoder, &src, 900).unwrap();
    let right = DecodeDict::new(&ours);
    let wrong = DecodeDict::new(&other);
    assert_eq!(decoded(Codec::Zstd, &stream, 900, Some(&right)), Ok(src));
    assert!(decoded(Codec::Zstd, &stream, 900, Some(&wrong)).is_err());
    assert!(decoded(Codec::Zstd, &stream, 900, None).is_err());
    let damaged = DecodeDict::new(&ours[..20]);
    assert!(decoded(Codec::Zstd, &stream, 900, Some(&damaged)).is_err());
}

#[test]
fn formats_without_a_decoder_are_refused() {
    let mut decoder = Decoder::new();
    for format in [CodecFormat::Snappy, CodecFormat::Registered] {
        let verdict = decoder.decode(format, b"abc", &mut [0; 4], None);
        assert!(verdict.unwrap_err().contains("not built in"));
    }
}

#[test]
fn workers_may_share_a_dictionary() {
    let bytes = sample(4000, 3, 5);
    for codec in [Codec::Lz4, Codec::Lz4Hc, Codec::Zstd] {
        let dict = PreparedDict::new(codec, 4, &bytes).unwrap();
        let decode_dict = DecodeDict::new(&bytes);
        let streams: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let work = || {
                let mut encoder = Encoder::new(codec, 4, Some(&dict)).unwrap();
                let mut stream = Vec::new();
                for round in 0..40 {
                    let src = sample(2000, 3, round + 1);
                    stream = encoded(&mut encoder, &src, 2000).unwrap();
                    assert_eq!(decoded(codec, &stream, 2000, Some(&decode_dict)), Ok(src));
                }
                stream
            };
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        assert!(streams.iter().all(|s| *s == streams[0]));
    }
}

fn codecs() -> impl Strategy<Value = Codec> {
    prop::sample::select(&Codec::ALL[..])
}

#[test]
fn a_prefix_of_lz4_with_a_distance_of_zero_is_the_start_of_the_whole() {
    // One literal, 219 bytes from 0 bytes back, 5 literals.
    let stream = [0x1F, 65, 0, 0, 200, 0x50, 1, 2, 3, 4, 5];
    let mut decoder = Decoder::new();
    let mut whole = vec![0xEE; 225];
    assert_eq!(decoder.decode(CodecFormat::Lz4, &stream, &mut whole, None), Ok(()));
    for n in 0..=225 {
        let (mut dst, mut scratch) = (vec![0xC7; n], vec![0xC7; 225]);
        assert_eq!(decoder.decode_prefix(CodecFormat::Lz4, &stream, &mut dst, 225, &mut scratch), Ok(()));
        assert_eq!(dst, whole[..n], "{n} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_is_encoded_decodes(
        codec in codecs(),
        clevel in 1_u8..10,
        len in prop_oneof![0_usize..200, 0_usize..100_000],
        kind in any::<u8>(),
        seed in any::<u64>(),
    ) {
        let src = sample(len, kind, seed);
        let mut encoder = Encoder::new(codec, clevel, None).unwrap();
        if let Some(stream) = encoded(&mut encoder, &src, len) {
            prop_assert_eq!(decoded(codec, &stream, len, None), Ok(src));
        }
    }

    #[test]
    fn arbitrary_bytes_roundtrip(
        codec in codecs(),
        src in prop::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..3000),
    ) {
        let mut encoder = Encoder::new(codec, 6, None).unwrap();
        if let Some(stream) = encoded(&mut encoder, &src, src.len() + 100) {
            prop_assert_eq!(decoded(codec, &stream, src.len(), None), Ok(src));
        }
    }

    #[test]
    fn a_small_destination_declines_or_holds_the_stream(
        codec in codecs(),
        clevel in 1_u8..8,
        len in 1_usize..5000,
        kind in any::<u8>(),
        permille in 0_usize..1100,
    ) {
        let src = sample(len, kind, 11);
        let mut encoder = Encoder::new(codec, clevel, None).unwrap();
        let whole = encoded(&mut encoder, &src, len + 500);
        let capacity = whole.as_ref().map_or(len, Vec::len) * permille / 1000;
        if let Some(stream) = encoded(&mut encoder, &src, capacity) {
            prop_assert_eq!(decoded(codec, &stream, len, None), Ok(src));
        }
    }

    #[test]
    fn damaged_streams_never_panic_nor_overrun(
        codec in codecs(),
        kind in any::<u8>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        keep in any::<prop::sample::Index>(),
        with_dict in any::<bool>(),
    ) {
        let src = sample(4000, kind, 23);
        let mut encoder = Encoder::new(codec, 5, None).unwrap();
        let mut stream = encoded(&mut encoder, &src, 5000).unwrap_or_else(|| src.clone());
        for (at, byte) in edits {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream.truncate(keep.index(2 * stream.len()));
        let dict = DecodeDict::new(&sample(700, 1, 3));
        for nbytes in [0, 1, 100, 3999, 4000, 4001, 9000] {
            // Ok or not: `decoded` checks the bounds, and Ok means filled.
            let whole = decoded(codec, &stream, nbytes, with_dict.then_some(&dict));
            let mut prefix = vec![0; nbytes / 2];
            let part = Decoder::new().decode_prefix(
                codec.format(), &stream, &mut prefix, nbytes, &mut Vec::new(),
            );
            if let (false, Ok(whole)) = (with_dict, whole) {
                prop_assert_eq!(part, Ok(()));
                prop_assert_eq!(&prefix[..], &whole[..nbytes / 2]);
            }
        }
    }

    #[test]
    fn a_prefix_is_the_start_of_the_whole(
        codec in codecs(),
        len in 1_usize..50_000,
        kind in prop::sample::select(vec![0_u8, 1, 3]),
        part in any::<prop::sample::Index>(),
    ) {
        let src = sample(len, kind, 31);
        let mut encoder = Encoder::new(codec, 5, None).unwrap();
        let Some(stream) = encoded(&mut encoder, &src, len + 500) else { return Ok(()) };
        let mut dst = vec![0xC7; part.index(len + 1) + 64];
        let n = dst.len() - 64;
        let mut scratch = Vec::new();
        let mut decoder = Decoder::new();
        let format = codec.format();
        prop_assert_eq!(
            decoder.decode_prefix(format, &stream, &mut dst[..n], len, &mut scratch),
            Ok(())
        );
        prop_assert_eq!(&dst[..n], &src[..n]);
        prop_assert!(dst[n..].iter().all(|&b| b == 0xC7));
        let mut more = vec![0; len + 1];
        prop_assert!(
            decoder.decode_prefix(format, &stream, &mut more, len, &mut scratch).is_err()
        );
    }

    #[test]
    fn noise_never_panics(
        codec in codecs(),
        stream in prop::collection::vec(any::<u8>(), 0..400),
        nbytes in 0_usize..3000,
    ) {
        let _ = decoded(codec, &stream, nbytes, None);
    }
}
