//! Data for the tests of all filters: every version must agree at every alignment, length and tail.

use crate::cpu::Isa;

/// Bytes without a pattern, the same every time.
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[4]
    })
    .take(length)
    .collect()
}

/// Call `test` with blocks of all kinds of lengths and a number of bytes by which to misplace the output; the
/// block itself is misplaced too. Lengths are chosen with items of `width` bytes in mind.
pub(super) fn cases(width: usize, mut test: impl FnMut(&[u8], usize)) {
    let data = noise(64 + 4100 * width.min(16) + 300 * width);
    let short = (0..300).map(|length| (length, length * 7 % 64));
    let few = (0..80).map(|nitems| (nitems * width + nitems % width, nitems * 5 % 64));
    let aligned = (0..64).map(|at| (97 * width + at % 9, at));
    let large = [(256, 0), (512, 1), (1000, 63), (4096, 32), (4099, 17)].map(|(n, at)| (n * width.min(16) + 3, at));
    for (length, at) in short.chain(few).chain(aligned).chain(large).chain([(300 * width + 1, 9)]) {
        test(&data[at..at + length], 63 - at);
        test(&data[at / 2..at / 2 + length], at);
    }
}

/// Call `test` with all that this machine has.
pub(super) fn on_every_isa(test: impl FnMut(Isa)) {
    Isa::available().into_iter().for_each(test);
}
