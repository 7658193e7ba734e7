//! Numbers for tests, the same every time.

/// Numbers that repeat nothing.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number; its upper bits are the better ones.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.number().to_be_bytes()[0]
    }
}

/// Bytes that repeat nothing.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    std::iter::repeat_with(|| random.byte()).take(length).collect()
}
