//! Arrays of random shapes, read and packed, against item-by-item models.

use super::*;
use crate::source::ChunkLocation;
use proptest::collection::vec;
use proptest::prelude::*;
use superchunk_engine::codecs::Codec;
use superchunk_engine::encode::{MAX_OVERHEAD, encode, encode_vlblocks, special_chunk};
use superchunk_engine::header::Special;
use superchunk_engine::params::{EncodeOptions, EncodeParams};

pub(crate) fn options(codec: Codec, typesize: usize, blocksize: usize, filters: [u8; 6]) -> EncodeOptions {
    EncodeOptions {
        codec: codec.id(),
        codec_meta: 0,
        clevel: 5,
        typesize,
        blocksize,
        splitmode: 3,
        filters,
        filters_meta: [0; 6],
        shape: None,
        use_dict: false,
        blosc1: false,
        nthreads: 1,
    }
}

pub(crate) fn compress(content: &[u8], options: EncodeOptions) -> Vec<u8> {
    let params = EncodeParams::new(options, None).unwrap();
    let mut chunk = vec![0; content.len() + MAX_OVERHEAD];
    let length = encode(content, &params, None, None, &mut chunk).unwrap();
    chunk.truncate(length);
    chunk
}

/// All tuples of numbers below `counts`, in C order.
fn tuples(counts: &[usize]) -> Vec<Vec<usize>> {
    counts.iter().fold(vec![vec![]], |before, &count| {
        before.iter().flat_map(|head| (0..count).map(move |n| [head.as_slice(), &[n]].concat())).collect()
    })
}

/// Item number of an item in its chunk, from the format's page.
fn place_in_chunk(geometry: &Geometry, at: &[usize]) -> usize {
    let (mut block, mut inner) = (0, 0);
    for (i, &x) in at.iter().enumerate() {
        let (size, chunk) = (geometry.blocks()[i], geometry.chunks()[i]);
        block = block * chunk.div_ceil(size) + x / size;
        inner = inner * size + x % size;
    }
    block * geometry.blocks().iter().product::<usize>() + inner
}

/// An array of a geometry, cut into chunks.
#[derive(Debug, Clone)]
struct Model {
    geometry: Geometry,
    shape: Vec<usize>,
    items: Vec<u8>,
    contents: Vec<Vec<u8>>,
}

impl Model {
    fn new(shape: &[usize], chunks: &[i64], blocks: &[i64], itemsize: usize) -> Self {
        let geometry = Geometry::new(chunks, blocks, itemsize).unwrap();
        let grid: Vec<usize> = shape.iter().zip(geometry.chunks()).map(|(&s, &c)| s.div_ceil(c.max(1))).collect();
        let nchunks = grid.iter().product();
        // Padding is not zero, so that it is noticed wherever it comes out.
        let mut contents = vec![vec![0xEE; geometry.chunk_nbytes()]; nchunks];
        let mut items = Vec::new();
        for (n, at) in tuples(shape).iter().enumerate() {
            let item: Vec<u8> = (0..itemsize).map(|byte| ((n * 7) >> (3 * byte % 24)).to_le_bytes()[0]).collect();
            let (chunk, inside): (Vec<_>, Vec<_>) =
                at.iter().zip(geometry.chunks()).map(|(&x, &c)| (x / c, x % c)).unzip();
            let nchunk = chunk.iter().zip(&grid).fold(0, |sum, (&x, &g)| sum * g + x);
            let location = place_in_chunk(&geometry, &inside) * itemsize;
            contents[nchunk][location..location + itemsize].copy_from_slice(&item);
            items.extend(item);
        }
        Self { geometry, shape: shape.to_vec(), items, contents }
    }

    /// Numbers of the chunks that positions meet.
    fn intersected(&self, positions: &[Vec<usize>]) -> Vec<usize> {
        let mut numbers = vec![0];
        for (i, positions) in positions.iter().enumerate() {
            let chunk = self.geometry.chunks()[i];
            let grid = self.shape[i].div_ceil(chunk.max(1));
            let mut intersected: Vec<usize> = positions.iter().map(|x| x / chunk).collect();
            intersected.dedup();
            numbers = numbers.iter().flat_map(|n| intersected.iter().map(move |x| n * grid + x)).collect();
        }
        numbers
    }

    fn expected(&self, positions: &[Vec<usize>]) -> Vec<u8> {
        let counts: Vec<usize> = positions.iter().map(Vec::len).collect();
        let itemsize = self.geometry.itemsize();
        let mut out = Vec::new();
        for at in tuples(&counts) {
            let n = (0..at.len()).fold(0, |sum, i| sum * self.shape[i] + positions[i][at[i]]);
            out.extend(&self.items[n * itemsize..(n + 1) * itemsize]);
        }
        out
    }

    fn read(&self, chunks: &[Vec<u8>], picks: &[Pick<'_>], nthreads: usize) -> Result<Vec<u8>, BoxError> {
        let positions: Vec<Vec<usize>> = picks.iter().map(positions).collect();
        let counts: usize = positions.iter().map(Vec::len).product();
        let intersected = if counts == 0 { Vec::new() } else { self.intersected(&positions) };
        let locations: Vec<ChunkLocation<'_>> = intersected.iter().map(|&n| ChunkLocation::Bytes(&chunks[n])).collect();
        let mut dst = vec![0xA5; counts * self.geometry.itemsize()];
        let options = ReadOptions { nthreads, itemsize: Some(self.geometry.itemsize()), ..ReadOptions::default() };
        read_box(&self.geometry, picks, &locations, &mut dst, options)?;
        Ok(dst)
    }

    fn check(&self, chunks: &[Vec<u8>], picks: &[Pick<'_>]) {
        let expected = self.expected(&picks.iter().map(positions).collect::<Vec<_>>());
        for nthreads in [1, 2, 5] {
            assert_eq!(self.read(chunks, picks, nthreads).as_ref(), Ok(&expected), "{nthreads} threads");
        }
    }

    fn all(&self) -> Vec<Pick<'static>> {
        self.shape.iter().map(|&n| Pick::Range { start: 0, stop: n.cast_signed() as i64, step: 1 }).collect()
    }
}

fn positions(pick: &Pick<'_>) -> Vec<usize> {
    let list: Vec<i64> = match *pick {
        Pick::Range { start, stop, step } => (start..stop).step_by(usize::try_from(step).unwrap()).collect(),
        Pick::List(list) => list.to_vec(),
    };
    list.iter().map(|&x| usize::try_from(x).unwrap()).collect()
}

#[derive(Debug, Clone)]
enum Owned {
    Range(i64, i64, i64),
    List(Vec<i64>),
}

impl Owned {
    fn pick(&self) -> Pick<'_> {
        match self {
            Self::Range(start, stop, by) => Pick::Range { start: *start, stop: *stop, step: *by },
            Self::List(list) => Pick::List(list),
        }
    }
}

/// Extent, chunk and block of one dimension, and what is selected.
fn dimension(most: i64) -> impl Strategy<Value = (i64, i64, i64, Owned)> {
    (1..=most, 1..=most).prop_flat_map(|(extent, chunk)| (Just(extent), Just(chunk), 1..=chunk)).prop_flat_map(
        |(extent, chunk, block)| {
            let range = (0..=extent, 0..=extent, 1..=extent + 2).prop_map(|(a, b, step)| Owned::Range(a, b, step));
            let list = vec(0..extent, 0..6).prop_map(|mut list| {
                list.sort_unstable();
                Owned::List(list)
            });
            (Just(extent), Just(chunk), Just(block), prop_oneof![3 => range, 1 => list])
        },
    )
}

fn dimensions() -> impl Strategy<Value = Vec<(i64, i64, i64, Owned)>> {
    (0..=5_usize).prop_flat_map(|ndim| vec(dimension([1, 4000, 70, 16, 8, 5][ndim]), ndim))
}

type Shapes = (Vec<usize>, Vec<i64>, Vec<i64>);

fn shapes(dimensions: &[(i64, i64, i64, Owned)]) -> Shapes {
    let shape = dimensions.iter().map(|one| usize::try_from(one.0).unwrap()).collect();
    (shape, dimensions.iter().map(|one| one.1).collect(), dimensions.iter().map(|one| one.2).collect())
}

const PIPELINES: [[u8; 6]; 5] =
    [[0, 0, 0, 0, 0, 1], [0; 6], [0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 3, 1], [0, 0, 0, 0, 1, 35]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_selection_of_any_array_is_read(
        dimensions in dimensions(),
        itemsize in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12, 16, 300]),
        codec in 0..Codec::ALL.len(),
        pipeline in 0..PIPELINES.len(),
        plain in 0..4,
    ) {
        let (shape, chunks, blocks) = shapes(&dimensions);
        let model = Model::new(&shape, &chunks, &blocks, itemsize);
        let how = options(Codec::ALL[codec], itemsize, model.geometry.block_nbytes(), PIPELINES[pipeline]);
        let how = if plain == 0 { EncodeOptions { clevel: 0, ..how } } else { how };
        let stored: Vec<Vec<u8>> = model.contents.iter().map(|content| compress(content, how)).collect();
        let picks: Vec<Pick<'_>> = dimensions.iter().map(|one| one.3.pick()).collect();
        model.check(&stored, &picks);
        model.check(&stored, &model.all());
    }

    #[test]
    fn any_points_of_any_array_are_read(
        dimensions in dimensions(),
        itemsize in prop::sample::select(vec![1_usize, 4, 8, 12]),
        wanted in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..50),
        sort in any::<bool>(),
    ) {
        let (shape, chunks, blocks) = shapes(&dimensions);
        let model = Model::new(&shape, &chunks, &blocks, itemsize);
        let how = options(Codec::Lz4, itemsize, model.geometry.block_nbytes(), PIPELINES[0]);
        let stored: Vec<Vec<u8>> = model.contents.iter().map(|content| compress(content, how)).collect();
        let locations: Vec<ChunkLocation<'_>> = stored.iter().map(|chunk| ChunkLocation::Bytes(chunk)).collect();
        let items = model.geometry.chunk_nbytes() / itemsize;
        let mut wanted: Vec<(usize, usize)> =
            wanted.iter().map(|(chunk, item)| (chunk.index(stored.len()), item.index(items))).collect();
        if sort {
            wanted.sort_unstable();
        }
        let (nsources, positions): (Vec<i64>, Vec<i64>) =
            wanted.iter().map(|&(a, b)| (a.cast_signed() as i64, b.cast_signed() as i64)).unzip();
        let expected: Vec<u8> = wanted
            .iter()
            .flat_map(|&(chunk, item)| model.contents[chunk][item * itemsize..(item + 1) * itemsize].to_vec())
            .collect();
        for nthreads in [1, 2, 5] {
            let mut dst = vec![0xA5; expected.len()];
            let options = ReadOptions { nthreads, itemsize: Some(itemsize), ..ReadOptions::default() };
            read_points(&model.geometry, &locations, &nsources, &positions, &mut dst, options).unwrap();
            prop_assert_eq!(&dst, &expected);
        }
    }

    #[test]
    fn any_part_of_memory_is_packed(
        dimensions in dimensions(),
        itemsize in prop::sample::select(vec![1_usize, 2, 4, 5, 8, 16]),
        ways in vec((any::<bool>(), 1..3_usize, any::<prop::sample::Index>()), 5),
        order in Just([0_usize, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let (_, chunks, blocks) = shapes(&dimensions);
        let geometry = Geometry::new(&chunks, &blocks, itemsize).unwrap();
        let ndim = dimensions.len();
        let extent: Vec<usize> = (0..ndim).map(|i| ways[i].2.index(geometry.chunks()[i] + 1)).collect();
        // An array of any order, with gaps, some dimensions backward.
        let mut strides = vec![0_i64; ndim];
        let mut size = itemsize;
        for &i in order.iter().filter(|&&i| i < ndim) {
            strides[i] = (size * ways[i].1).cast_signed() as i64;
            size *= ways[i].1 * extent[i].max(1);
        }
        let bytes: Vec<u8> = (0..size).map(|n| (n * n / 5 + n).to_le_bytes()[0]).collect();
        let mut offset = 0;
        for i in 0..ndim {
            if ways[i].0 && extent[i] > 0 {
                offset += usize::try_from(strides[i]).unwrap() * (extent[i] - 1);
                strides[i] = -strides[i];
            }
        }
        let mut expected = vec![0; geometry.chunk_nbytes()];
        for at in tuples(&extent) {
            let from = (0..ndim).fold(offset.cast_signed() as i64, |sum, i| sum + at[i].cast_signed() as i64 * strides[i]);
            let (from, to) = (usize::try_from(from).unwrap(), place_in_chunk(&geometry, &at) * itemsize);
            expected[to..to + itemsize].copy_from_slice(&bytes[from..from + itemsize]);
        }
        let long: Vec<i64> = extent.iter().map(|&n| n.cast_signed() as i64).collect();
        for nthreads in [1, 3] {
            let how = EncodeOptions { nthreads, ..options(Codec::Lz4, itemsize, geometry.block_nbytes(), PIPELINES[0]) };
            let params = EncodeParams::new(how, None).unwrap();
            let src = Strided { bytes: &bytes, offset, strides: &strides, extent: &long };
            let mut out = vec![0; geometry.chunk_nbytes() + MAX_OVERHEAD];
            let length = pack(&geometry, &params, src, None, None, &mut out).unwrap();
            prop_assert_eq!(&out[..length], &compress(&expected, how));
        }
    }

    #[test]
    fn any_damage_is_an_error_or_harmless(
        codec in 0..Codec::ALL.len(),
        locations in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let model = Model::new(&[60, 70], &[60, 70], &[16, 16], 4);
        let how = options(Codec::ALL[codec], 4, model.geometry.block_nbytes(), PIPELINES[0]);
        let mut stored = compress(&model.contents[0], how);
        for (location, byte) in locations {
            let at = location.index(stored.len());
            stored[at] = byte;
        }
        let stored = [stored];
        let picks = [Pick::Range { start: 3, stop: 50, step: 7 }, Pick::List(&[0, 1, 1, 65])];
        let outcomes = [1, 3].map(|nthreads| model.read(&stored, &picks, nthreads).ok());
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
        drop(model.read(&stored, &model.all(), 2));
    }
}

#[test]
fn special_chunks_are_fills() {
    let geometry = Geometry::new(&[7, 9], &[4, 4], 8).unwrap();
    let value = 0x0102_0304_0506_0708_u64.to_le_bytes();
    for (special, typesize, item) in [
        (Special::Zero, 8, [0; 8]),
        (Special::Uninit, 8, [0; 8]),
        (Special::Nan, 8, f64::NAN.to_le_bytes()),
        (Special::Nan, 4, [f32::NAN.to_le_bytes(), f32::NAN.to_le_bytes()].concat().try_into().unwrap()),
        (Special::Value, 8, value),
    ] {
        let given = (special == Special::Value).then_some(value.as_slice());
        let chunk = special_chunk(special, geometry.chunk_nbytes(), typesize, given, geometry.block_nbytes()).unwrap();
        let model = Model::new(&[7, 9], &[7, 9], &[4, 4], 8);
        let picks = [Pick::Range { start: 1, stop: 7, step: 2 }, Pick::List(&[0, 3, 8])];
        assert_eq!(model.read(&[chunk], &picks, 2), Ok(item.repeat(9)), "{special:?}");
    }
    // A value that is not one item: the bytes are repeated all the same.
    let chunk = special_chunk(Special::Value, geometry.chunk_nbytes(), 16, Some(&[value, [9; 8]].concat()), 0).unwrap();
    let model = Model::new(&[7, 9], &[7, 9], &[4, 4], 8);
    let picks = [Pick::Range { start: 4, stop: 6, step: 1 }, Pick::Range { start: 0, stop: 2, step: 1 }];
    assert_eq!(model.read(&[chunk], &picks, 1), Ok([value, [9; 8], value, [9; 8]].concat()));
}

#[test]
fn chunks_cut_otherwise_are_read_whole() {
    let model = Model::new(&[30, 40], &[30, 40], &[8, 8], 4);
    let content = &model.contents[0];
    let picks = [Pick::Range { start: 2, stop: 29, step: 3 }, Pick::Range { start: 5, stop: 40, step: 1 }];
    for blocksize in [8, 100, 64 * 4, 1000, content.len()] {
        model.check(&[compress(content, options(Codec::Zstd, 4, blocksize, PIPELINES[0]))], &picks);
    }
    let params = EncodeParams::new(options(Codec::Lz4, 4, 0, PIPELINES[0]), None).unwrap();
    let blocks: Vec<&[u8]> = content.chunks(777).collect();
    model.check(&[encode_vlblocks(&blocks, &params, None, None).unwrap()], &picks);
}

#[test]
fn chunks_of_another_length_are_refused_with_their_number() {
    let model = Model::new(&[40, 40], &[10, 10], &[5, 5], 4);
    let how = options(Codec::Lz4, 4, 100, PIPELINES[0]);
    let mut stored: Vec<Vec<u8>> = model.contents.iter().map(|content| compress(content, how)).collect();
    stored[6] = compress(&model.contents[6][..396], how);
    for nthreads in [1, 2, 8] {
        let failure = model.read(&stored, &model.all(), nthreads).unwrap_err();
        assert_eq!(failure.nsource, Some(6));
        assert!(
            matches!(failure.error, crate::Error::Chunk(Error::Field { field: "nbytes", found: 396, .. })),
            "{failure:?}"
        );
    }
}

#[test]
fn arguments_are_checked() {
    let geometry = Geometry::new(&[10, 10], &[5, 5], 4).unwrap();
    let chunk = compress(&[1; 400], options(Codec::Lz4, 4, 100, PIPELINES[0]));
    let location: ChunkLocation<'_> = ChunkLocation::Bytes(&chunk);
    let read = |picks: &[Pick<'_>], nchunks: usize, length: usize| {
        let mut dst = vec![0; length];
        let failure =
            read_box(&geometry, picks, &vec![location; nchunks], &mut dst, ReadOptions::default()).unwrap_err();
        assert_eq!(failure.nsource, None);
        failure.error.to_string()
    };
    let range = |start, stop, step| Pick::Range { start, stop, step };
    let one = range(0, 1, 1);
    assert_eq!(read(&[one], 1, 4), "box: expected 2 dimensions, got 1");
    assert_eq!(read(&[one, range(-1, 1, 1)], 1, 4), "box: expected a start of at least 0 in dimension 1, got -1");
    assert_eq!(read(&[range(0, 1, 0), one], 1, 4), "box: expected a step of at least 1 in dimension 0, got 0");
    assert_eq!(read(&[one, Pick::List(&[-5])], 1, 4), "box: expected positions of at least 0 in dimension 1, got -5");
    let unordered = [Pick::List(&[3, 2]), one];
    assert_eq!(read(&unordered, 1, 8), "box: expected ascending positions in dimension 0, after 3, got 2");
    assert_eq!(read(&[one, one], 2, 4), "sources: expected the 1 chunks that the box intersects, got 2");
    assert_eq!(read(&[one, one], 1, 5), "destination: need 4 bytes, got 5");
    let huge = [range(0, i64::MAX, 1), range(i64::MAX, i64::MIN, 1)];
    assert_eq!(read(&huge, 1, 0), "sources: expected the 0 chunks that the box intersects, got 1");
    assert_eq!(
        read(&[range(0, i64::MAX, 1), range(0, i64::MAX, 1)], 1, 4).split(',').next(),
        Some("destination: need 18446744073709551615 bytes")
    );
    // Far away, but one item: a chunk is where the caller says.
    let far = [range(i64::MAX - 1, i64::MAX, i64::MAX), Pick::List(&[i64::MAX])];
    let mut dst = [0; 4];
    assert_eq!(read_box(&geometry, &far, &[location], &mut dst, ReadOptions::default()), Ok(()));
    assert_eq!(dst, [1; 4]);
    assert_eq!(read_box(&geometry, &[one, range(3, 3, 1)], &[], &mut [], ReadOptions::default()), Ok(()));
    let points = |nsources: &[i64], positions: &[i64], length: usize| {
        let mut dst = vec![0; length];
        read_points(&geometry, &[location], nsources, positions, &mut dst, ReadOptions::default())
            .unwrap_err()
            .error
            .to_string()
    };
    assert_eq!(points(&[0], &[], 4), "position: expected 1 numbers, one for each source number, got 0");
    assert_eq!(points(&[1], &[0], 4), "nsource: expected at least 0 and below 1, got 1");
    assert_eq!(points(&[0], &[100], 4), "position: expected at least 0 and below 100, got 100");
    assert_eq!(points(&[0], &[-1], 4), "position: expected at least 0 and below 100, got -1");
    assert_eq!(points(&[0], &[0], 3), "destination: need 4 bytes, got 3");
}

#[test]
fn packing_checks_its_range() {
    let geometry = Geometry::new(&[10], &[5], 4).unwrap();
    let pack_with = |blocksize, offset, stride, extent| {
        let params = EncodeParams::new(options(Codec::Lz4, 4, blocksize, PIPELINES[0]), None).unwrap();
        let src = Strided { bytes: &[7; 40], offset, strides: &[stride], extent: &[extent] };
        let mut out = [0; 100];
        pack(&geometry, &params, src, None, None, &mut out).map_err(|error| error.to_string())
    };
    assert!(pack_with(20, 0, 4, 10).is_ok());
    assert!(pack_with(20, 36, -4, 10).is_ok());
    assert!(pack_with(20, 36, 0, 10).is_ok());
    assert!(pack_with(20, usize::MAX, i64::MIN, 0).is_ok());
    let outside = |found: i64| Err(format!("strides: expected items within the 40 bytes of src, got {found}"));
    assert_eq!(pack_with(20, 1, 4, 10), outside(40));
    assert_eq!(pack_with(20, 35, -4, 10), outside(-1));
    assert_eq!(pack_with(20, 0, i64::MAX, 3), outside(i64::MAX));
    assert_eq!(pack_with(20, usize::MAX, 4, 1), outside(i64::MAX));
    assert_eq!(pack_with(20, 0, 4, 11), Err("extent: expected 0 to 10 in dimension 0, got 11".into()));
    assert_eq!(pack_with(20, 0, 4, -1), Err("extent: expected 0 to 10 in dimension 0, got -1".into()));
    assert_eq!(pack_with(40, 0, 4, 10), Err("blocksize: expected 20, the block size of the geometry, got 40".into()));
}

#[test]
fn geometries_are_checked() {
    let refused =
        |chunks: &[i64], blocks: &[i64], itemsize| Geometry::new(chunks, blocks, itemsize).unwrap_err().to_string();
    assert_eq!(refused(&[1; 17], &[1; 17], 1), "chunks: expected at most 16 dimensions, got 17");
    assert_eq!(refused(&[1], &[], 1), "blocks: expected 1 dimensions, like chunks, got 0");
    assert_eq!(refused(&[], &[], 0), "itemsize: expected 1 to 536866816, got 0");
    assert_eq!(refused(&[-1], &[1], 1), "chunks: expected 0 to 2147483647 in dimension 0, got -1");
    assert_eq!(refused(&[5], &[0], 1), "blocks: expected 1 to 5 in dimension 0, got 0");
    assert_eq!(refused(&[5, 5], &[5, 6], 1), "blocks: expected 1 to 5 in dimension 1, got 6");
    assert_eq!(refused(&[1 << 30], &[1 << 29], 1), "blocks: expected at most 536866816 bytes in all, got 536870912");
    assert_eq!(
        refused(&[1 << 20; 16], &[1 << 16; 16], 1 << 20).split(',').next(),
        Some("blocks: expected at most 536866816 bytes in all")
    );
    let padded = Geometry::new(&[3, 4], &[2, 3], 4).unwrap();
    assert_eq!((padded.chunk_nbytes(), padded.block_nbytes()), (96, 24));
    let lone = Geometry::new(&[], &[], 300).unwrap();
    assert_eq!((lone.chunk_nbytes(), lone.block_nbytes()), (300, 300));
    let empty = Geometry::new(&[0, 5], &[0, 5], 4).unwrap();
    assert_eq!((empty.chunk_nbytes(), empty.block_nbytes()), (0, 0));
    let picks = [Pick::Range { start: 0, stop: 0, step: 1 }, Pick::Range { start: 0, stop: 5, step: 1 }];
    assert_eq!(read_box(&empty, &picks, &[], &mut [], ReadOptions::default()), Ok(()));
}

#[test]
fn most_dimensions_are_read() {
    let model = Model::new(&[2; 16], &[2; 16], &[1; 16], 1);
    let stored: Vec<Vec<u8>> =
        model.contents.iter().map(|content| compress(content, options(Codec::Lz4, 1, 1, [0; 6]))).collect();
    assert_eq!(model.read(&stored, &model.all(), 2).as_ref(), Ok(&model.items));
}
