//! What the filters of arrays promise.

use proptest::prelude::*;

use super::*;
use crate::filters::NDCELL;

fn shape(dims: &[usize]) -> BlockShape {
    BlockShape::new(dims).unwrap()
}

/// The order of items, one by one: where the item that comes n-th is.
fn order(dims: &[usize], side: usize) -> Vec<usize> {
    let total: usize = dims.iter().product();
    let mut items: Vec<(Vec<usize>, Vec<usize>, usize)> = (0..total)
        .map(|item| {
            let mut rest = item;
            let mut at = vec![0; dims.len()];
            for (coord, &limit) in at.iter_mut().zip(dims).rev() {
                *coord = rest % limit;
                rest /= limit;
            }
            (at.iter().map(|coord| coord / side).collect(), at.iter().map(|coord| coord % side).collect(), item)
        })
        .collect();
    items.sort();
    items.into_iter().map(|(.., item)| item).collect()
}

#[test]
fn cells_come_one_after_the_other() {
    let cells = Cells::for_writing(NDCELL, 2, 1, Some(shape(&[4, 5]))).unwrap();
    let block: Vec<u8> = (0..20).collect();
    let mut out = [0xA5; 20];
    cells.forward(&block, &mut out).unwrap();
    assert_eq!(out, [0, 1, 5, 6, 2, 3, 7, 8, 4, 9, 10, 11, 15, 16, 12, 13, 17, 18, 14, 19]);
}

#[test]
fn means_are_summed_in_the_type_of_the_items() {
    let cells = Cells::for_writing(NDMEAN, 2, 4, Some(shape(&[2, 3]))).unwrap();
    let block: Vec<u8> = [1e8_f32, 1.0, 7.0, 1.0, -1e8, 9.0].iter().flat_map(|item| item.to_le_bytes()).collect();
    let mut out = [0xA5; 24];
    cells.forward(&block, &mut out).unwrap();
    let means: Vec<f32> = out.as_chunks::<4>().0.iter().map(|raw| f32::from_le_bytes(*raw)).collect();
    // 1e8 + 1 + 1 is 1e8 in 32 bits.
    assert_eq!(means, [0.0, 0.0, 0.0, 0.0, 8.0, 8.0]);
}

#[test]
fn what_is_missing_is_named() {
    let missing = Cells::for_reading(2, NDCELL, 4, 4, None).unwrap_err();
    assert_eq!(missing, Error::NeedsShape { what: "filter", id: 32, name: "ndcell", field: "filters", at: 18 });
    assert!(missing.to_string().contains("b2nd"));
    let Error::Argument { name: "filters", expected, .. } = Cells::for_writing(NDMEAN, 4, 4, None).unwrap_err() else {
        panic!("another error");
    };
    assert!(expected.contains("b2nd"));
}

#[test]
fn hostile_shapes_and_metas_are_refused() {
    for (id, meta, width, dims) in [
        (NDCELL, 0, 4, &[4, 4][..]),
        (NDMEAN, 0, 4, &[4, 4]),
        (NDMEAN, 128, 4, &[4, 4]),
        (NDMEAN, 255, 8, &[4, 4]),
        (NDMEAN, 2, 2, &[4, 4]),
        (NDCELL, 2, 1, &[]),
        (NDCELL, 2, 1, &[2; 9]),
    ] {
        let read = Cells::for_reading(5, id, meta, width, Some(shape(dims)));
        assert!(matches!(read, Err(Error::Field { field: "filters_meta", at: 29, .. })), "{read:?}");
        assert!(matches!(Cells::for_writing(id, meta, width, Some(shape(dims))), Err(Error::Argument { .. })));
    }
    // Others could not undo these.
    for (id, meta, dims) in [(NDCELL, 12, [2, 64]), (NDMEAN, 4, [2, 64]), (NDMEAN, 3, [64, 2])] {
        assert!(Cells::for_writing(id, meta, 4, Some(shape(&dims))).is_err());
        assert!(Cells::for_reading(0, id, meta, 4, Some(shape(&dims))).is_ok());
    }
}

#[test]
fn blocks_of_another_size_are_refused() {
    let cells = Cells::for_reading(0, NDCELL, 2, 4, Some(shape(&[3, 5]))).unwrap();
    for length in [0, 4, 56, 59, 61, 64, 120] {
        let (src, mut dst) = (vec![1; length], vec![2; length]);
        assert!(matches!(cells.backward(&src, &mut dst), Err(Error::Field { field: "blocksize", at: 8, .. })));
        assert!(matches!(cells.forward(&src, &mut dst), Err(Error::Argument { name: "data", .. })));
        assert_eq!(dst, vec![2; length]);
    }
    // 2^29 items of 2^32 bytes do not wrap around to something small.
    let huge = Cells::for_reading(0, NDCELL, 2, 1 << 29, Some(shape(&[1 << 14, 1 << 14]))).unwrap();
    assert_eq!(huge.nbytes(), 1 << 57);
}

proptest! {
    #[test]
    fn cells_are_in_the_order_of_the_format(
        dims in prop::collection::vec(1..7_usize, 1..5), meta in 1..9_u8, width in 1..9_usize,
    ) {
        let total: usize = dims.iter().product();
        let cells = Cells::for_reading(0, NDCELL, meta, width, Some(shape(&dims))).unwrap();
        let block: Vec<u8> = (0..=250).cycle().take(total * width).collect();
        let mut out = vec![0xA5; block.len()];
        cells.forward(&block, &mut out).unwrap();
        let expected: Vec<u8> =
            order(&dims, meta.into()).iter().flat_map(|n| block[n * width..(n + 1) * width].to_vec()).collect();
        prop_assert_eq!(&out, &expected);
        let mut back = vec![0xA5; block.len()];
        cells.backward(&out, &mut back).unwrap();
        prop_assert_eq!(back, block);
    }
}
