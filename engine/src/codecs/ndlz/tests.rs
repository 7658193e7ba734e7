//! What NDLZ promises.

use proptest::prelude::*;

use super::*;

fn plan(rows: usize, cols: usize, side: u8) -> Plan {
    Plan::new(side, Some(BlockShape::new(&[rows, cols]).unwrap())).unwrap()
}

fn encoded(rows: usize, cols: usize, side: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![0xA5; 2 * content.len() + 100];
    let length = encode(plan(rows, cols, side), content, &mut out).unwrap();
    out.truncate(length);
    out
}

fn decoded(side: u8, stream: &[u8], length: usize) -> Result<Vec<u8>, &'static str> {
    let mut outcomes = [0xA5, 0x5A].map(|filling| {
        let mut dst = vec![filling; length];
        decode(side, stream, &mut dst).map(|()| dst)
    });
    assert_eq!(outcomes[0], outcomes[1], "a byte of the destination was not written");
    std::mem::replace(&mut outcomes[0], Ok(Vec::new()))
}

/// A stream of one cell of side 4 in front, with rows 1 to 16, and one written out by hand.
fn by_hand(cell: &[u8]) -> Vec<u8> {
    let mut stream = vec![2, 4, 0, 0, 0, 8, 0, 0, 0, LITERAL];
    stream.extend(1..=16);
    stream.extend(cell);
    stream
}

/// The rows of the second cell of such a stream.
fn second(cell: &[u8]) -> Result<[[u8; 4]; 4], &'static str> {
    let decoded = decoded(4, &by_hand(cell), 32)?;
    Ok([0, 1, 2, 3].map(|row| [4, 5, 6, 7].map(|col| decoded[row * 8 + col])))
}

#[test]
fn every_token_of_side_4_means_what_the_format_says() {
    let rows = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]];
    let (x, y) = ([91; 4], [92; 4]);
    // The second token is at 26, the first literal at 10.
    assert_eq!(second(&[0xC0, 16, 0]), Ok(rows));
    assert_eq!(second(&[0x40, 7]), Ok([[7; 4]; 4]));
    let three = |token| [&[token, 16, 0][..], &x].concat();
    assert_eq!(second(&three(0xE0)), Ok([x, rows[0], rows[1], rows[2]]));
    assert_eq!(second(&three(0xE8)), Ok([rows[0], rows[1], rows[2], x]));
    assert_eq!(second(&three(0xF0)), Ok([rows[0], rows[1], x, rows[2]]));
    assert_eq!(second(&three(0xF8)), Ok([rows[0], x, rows[1], rows[2]]));
    let two = |token| [&[token, 12, 0][..], &x, &y].concat();
    assert_eq!(second(&two(0x88)), Ok([rows[1], rows[2], x, y]));
    assert_eq!(second(&two(0x90)), Ok([rows[1], x, rows[2], y]));
    assert_eq!(second(&two(0x98)), Ok([rows[1], x, y, rows[2]]));
    assert_eq!(second(&two(0xB0)), Ok([x, rows[1], rows[2], y]));
    assert_eq!(second(&two(0xB8)), Ok([x, rows[1], y, rows[2]]));
    assert_eq!(second(&two(0x80)), Ok([x, y, rows[1], rows[2]]));
    assert_eq!(second(&[0x28, 16, 0, 8, 0]), Ok(rows));
    assert_eq!(second(&[0x30, 16, 0, 8, 0]), Ok([rows[0], rows[2], rows[1], rows[3]]));
    assert_eq!(second(&[0x38, 16, 0, 8, 0]), Ok([rows[0], rows[2], rows[3], rows[1]]));
}

#[test]
fn hostile_streams_are_refused() {
    for cell in [
        &[][..],
        &[0xC0],
        &[0xC0, 16],
        &[0xC0, 27, 0],
        &[0xC0, 10, 0],
        // Rows that begin with the cell's own token.
        &[0x88, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0xC0, 0xFF, 0xFF],
        &[0xC0, 16, 0, 0],
        &[0x40],
        &[0x00, 1, 2, 3],
        &[0xE0, 16, 0, 1, 2, 3],
        &[0x28, 16, 0, 8],
        &[0x28, 16, 0, 0xFF, 0xFF],
        &[0x80, 2, 0, 1, 2, 3, 4, 5, 6, 7],
        &[0xA0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0xA8, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x20, 16, 0, 8, 0],
        &[0x01],
        &[0xC8, 16, 0],
    ] {
        assert!(second(cell).is_err(), "{cell:02x?}");
    }
    let header = |rows: i32, cols: i32| [&[2][..], &rows.to_le_bytes(), &cols.to_le_bytes(), &[0x40, 7]].concat();
    assert_eq!(decoded(4, &header(2, 3), 6), Ok(vec![7; 6]));
    for (rows, cols) in [(-2, -3), (3, -2), (2, 4), (i32::MAX, i32::MAX), (i32::MIN, 2), (0, 0), (6, 0)] {
        assert!(decoded(4, &header(rows, cols), 6).is_err(), "{rows} by {cols}");
    }
    for side in [0, 1, 5, 16, 255] {
        assert!(decoded(side, &header(2, 3), 6).is_err());
    }
    let mut other = header(2, 3);
    other[0] = 3;
    assert!(decoded(4, &other, 6).is_err());
    for length in 0..9 {
        assert!(decoded(4, &header(2, 3)[..length], 6).is_err());
    }
    // A cell at the edge has no rows to repeat.
    let edge = [&header(3, 4)[..9], &[0xE0, 9, 0, 1, 2, 3, 4]].concat();
    assert!(decoded(4, &edge, 12).is_err());
    // Rows 6 to 8 of eight.
    let mut stream = [&[2, 8, 0, 0, 0, 16, 0, 0, 0, 0][..], &[1; 64], &[0xAD, 64, 0], &[2; 40]].concat();
    assert!(decoded(8, &stream, 128).is_ok());
    stream[74] = 0xAE;
    assert!(decoded(8, &stream, 128).is_err());
    stream[74] = 0x8F;
    stream.extend([3; 8]);
    assert!(decoded(8, &stream, 128).is_err());
    stream[74] = 0x8E;
    assert!(decoded(8, &stream, 128).is_ok());
}

#[test]
fn what_cannot_be_written_is_named() {
    let two = Some(BlockShape::new(&[8, 8]).unwrap());
    let three = Some(BlockShape::new(&[8, 8, 8]).unwrap());
    for (meta, shape, named) in
        [(0, two, "codec_meta"), (5, two, "codec_meta"), (4, None, "codec"), (4, three, "codec")]
    {
        assert!(matches!(Plan::new(meta, shape), Err(Error::Argument { name, .. }) if name == named));
    }
    assert_eq!(encode(plan(8, 8, 4), &[1; 63], &mut [0; 100]), None);
}

#[test]
fn repeated_rows_are_found() {
    let band = |n: u8| [3, 9, 1, 4, 4, 8, 2, 6].map(|byte: u8| byte.wrapping_mul(n + 1));
    for side in [4, 8] {
        let content: Vec<u8> = (0..64_u8).flat_map(|row| band(row % 8).repeat(8)).collect();
        let stream = encoded(64, 64, side, &content);
        assert!(stream.len() < 1200, "{}", stream.len());
        assert_eq!(decoded(side, &stream, 4096), Ok(content));
    }
}

#[test]
fn bytes_that_are_not_written_yet_are_no_repetition() {
    let content: Vec<u8> =
        [82, 82, 82, 3, 4, 4, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3, 0].into_iter().cycle().take(19 * 19).collect();
    let mut stream = vec![0; 2 * content.len() + 64];
    let length = encode(plan(19, 19, 4), &content, &mut stream).unwrap();
    assert_eq!(decoded(4, &stream[..length], 19 * 19), Ok(content));
}

fn arrays() -> impl Strategy<Value = (usize, usize, u8, Vec<u8>)> {
    (1..40_usize, 1..40_usize, prop_oneof![Just(4_u8), Just(8)], 1..5_u8).prop_flat_map(|(rows, cols, side, values)| {
        (Just(rows), Just(cols), Just(side), prop::collection::vec(0..values, rows * cols))
    })
}

proptest! {
    #[test]
    fn arrays_come_back((rows, cols, side, content) in arrays()) {
        let stream = encoded(rows, cols, side, &content);
        prop_assert_eq!(decoded(side, &stream, rows * cols), Ok(content.clone()));
        // With less room than that it declines, and writes nothing behind it.
        let mut short = vec![0; stream.len() - 1];
        prop_assert_eq!(encode(plan(rows, cols, side), &content, &mut short), None);
        let mut exact = vec![0; stream.len()];
        prop_assert_eq!(encode(plan(rows, cols, side), &content, &mut exact), Some(stream.len()));
        prop_assert_eq!(exact, stream);
    }

    #[test]
    fn damaged_streams_decode_or_give_an_error(
        (rows, cols, side, content) in arrays(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut stream = encoded(rows, cols, side, &content);
        for (index, byte) in edits {
            let at = index.index(stream.len());
            stream[at] = byte;
        }
        drop(decoded(side, &stream, rows * cols));
        stream.truncate(cut.index(stream.len()));
        drop(decoded(side, &stream, rows * cols));
    }
}
