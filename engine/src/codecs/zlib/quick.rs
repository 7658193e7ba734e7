//! Deflate at its quickest: one look for each place, and the codes that deflate has ready.
//!
//! A place is compared with the last one whose first four bytes had the same hash; what is found is taken. Literals,
//! lengths and distances are written in the fixed codes, so nothing is counted and no code is described. That is what
//! zlib-ng does at level 1 too, and it comes to the same size.
//!
//! Source: RFC 1951, section 3.2.

/// Bits of a hash, for long streams and for the shortest.
const BITS: u32 = 15;
const LEAST_BITS: u32 = 10;

/// Bytes that are compared before anything else is known, and the most that one match copies.
const LEAST: usize = 4;
const MOST: usize = 258;

/// Deflate refers to what is as near as this, in bytes.
const NEAR: usize = 32 * 1024;

/// A word of the stream is read at each place; where none is left, bytes are literals.
const WORD: usize = 8;

/// What begins a block in the fixed codes, the last one of a stream, and one that is stored, and the lengths of an empty one.
const FIXED: Code = Code(0b010, 3);
const LAST_FIXED: Code = Code(0b011, 3);
const STORED: Code = Code(0b000, 3);
const EMPTY: Code = Code(0xFFFF_0000, 32);

const END_OF_BLOCK: usize = 256;
const FIRST_LENGTH: usize = 257;

/// Bits as they are written, the first one lowest, and how many.
#[derive(Clone, Copy)]
struct Code(u32, u32);

/// The code of a literal, the end of a block, or a kind of length: deflate's codes are written from the top bit on.
const fn fixed(symbol: usize) -> Code {
    #[expect(clippy::cast_possible_truncation, reason = "there are 288 symbols")]
    let n = symbol as u32;
    let (code, length) = match symbol {
        0..144 => (0x30 + n, 8),
        144..256 => (0x190 + n - 144, 9),
        256..280 => (n - 256, 7),
        _ => (0xC0 + n - 280, 8),
    };
    Code(code.reverse_bits() >> (u32::BITS - length), length)
}

static SYMBOLS: [Code; END_OF_BLOCK + 1] = {
    let mut codes = [Code(0, 0); END_OF_BLOCK + 1];
    let mut symbol = 0;
    while symbol < codes.len() {
        codes[symbol] = fixed(symbol);
        symbol += 1;
    }
    codes
};

/// The codes of lengths from 3 on. After the first eight kinds, every four have a bit more behind the code; the longest
/// length is a kind of its own.
static LENGTHS: [Code; MOST + 1] = {
    let mut codes = [Code(0, 0); MOST + 1];
    let (mut kind, mut length) = (0, 3);
    while length < MOST {
        let extra = if kind < 8 { 0 } else { kind / 4 - 1 };
        let Code(code, bits) = fixed(FIRST_LENGTH + kind);
        let mut n = 0;
        while n < 1 << extra && length < MOST {
            #[expect(clippy::cast_possible_truncation, reason = "five bits at most")]
            let more = extra as u32;
            codes[length] = Code(code | (n << bits), bits + more);
            length += 1;
            n += 1;
        }
        kind += 1;
    }
    codes[MOST] = fixed(FIRST_LENGTH + 28);
    codes
};

/// The code of a distance: five bits, and below them all that is behind its two highest ones.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "distances have 16 bits")]
fn distance_code(distance: usize) -> Code {
    let value = distance as u32 - 1;
    let extra = (value | 2).ilog2() - 1;
    let kind = 2 * extra + (value >> extra);
    Code((kind.reverse_bits() >> 27) | ((value & ((1 << extra) - 1)) << 5), 5 + extra)
}

/// Reads `N` bytes from `at` on.
#[inline]
fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Where bits are written to.
struct Bits<'a> {
    dst: &'a mut [u8],
    length: usize,
    /// Bits that are not yet there, and how many.
    pending: u64,
    count: u32,
}

impl Bits<'_> {
    /// Adds bits; up to 56 may be pending before [`Bits::flush`].
    #[inline]
    fn put(&mut self, Code(code, bits): Code) {
        self.pending |= u64::from(code) << self.count;
        self.count += bits;
    }

    /// Writes all whole bytes, or returns `None` if they do not fit.
    #[inline]
    fn flush(&mut self) -> Option<()> {
        let whole = (self.count / 8) as usize;
        let rest = &mut self.dst[self.length..];
        let bytes = self.pending.to_le_bytes();
        match rest.first_chunk_mut() {
            // What is too much is overwritten.
            Some(word) => *word = bytes,
            None => rest.get_mut(..whole)?.copy_from_slice(&bytes[..whole]),
        }
        self.length += whole;
        self.pending >>= self.count & !7;
        self.count &= 7;
        Some(())
    }

    /// Goes on at a whole byte, and writes what is before it.
    fn align(&mut self) -> Option<()> {
        self.count = self.count.next_multiple_of(8);
        self.flush()
    }
}

/// The encoder, with its table of places.
pub(super) struct Quick(Box<[u16; 1 << BITS]>);

impl Quick {
    /// Makes one.
    #[expect(clippy::large_stack_arrays, reason = "64 KiB, once for each encoder")]
    pub(super) fn new() -> Self {
        Self(Box::new([0; 1 << BITS]))
    }

    /// Writes a block for all of `src` and returns its length, or `None` if it does not fit. It refers to nothing before it.
    /// If it is not the `last` of a stream, an empty block follows that ends at a whole byte.
    pub(super) fn encode(&mut self, src: &[u8], last: bool, dst: &mut [u8]) -> Option<usize> {
        let mut out = Bits { dst, length: 0, pending: 0, count: 0 };
        out.put(if last { LAST_FIXED } else { FIXED });
        self.write(src, &mut out)?;
        if !last {
            out.put(STORED);
            out.align()?;
            out.put(EMPTY);
        }
        out.align()?;
        Some(out.length)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "half of a word is hashed; places are told apart by 16 bits")]
    fn write(&mut self, src: &[u8], out: &mut Bits<'_>) -> Option<()> {
        let bits = (usize::BITS - src.len().leading_zeros()).clamp(LEAST_BITS, BITS);
        let table = &mut *self.0;
        table[..1 << bits].fill(0);
        let mut at = 0;
        while at + WORD < src.len() {
            let word = u64::from_le_bytes(load(src, at));
            let hash = ((word as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - bits)) as usize % (1 << BITS);
            // Of a place that is further away than 16 bits can tell, this is another one, which is as good.
            let distance = usize::from((at as u16).wrapping_sub(std::mem::replace(&mut table[hash], at as u16)));
            if (1..=NEAR.min(at)).contains(&distance) && u32::from_le_bytes(load(src, at - distance)) == word as u32 {
                let length = length_of(src, at, distance);
                out.put(LENGTHS[length]);
                out.put(distance_code(distance));
                at += length;
            } else {
                out.put(SYMBOLS[usize::from(word as u8)]);
                at += 1;
            }
            out.flush()?;
        }
        for &byte in &src[at..] {
            out.put(SYMBOLS[usize::from(byte)]);
            out.flush()?;
        }
        out.put(SYMBOLS[END_OF_BLOCK]);
        out.flush()
    }
}

/// How many bytes are the same as `distance` bytes before them; the first four are.
#[inline]
fn length_of(src: &[u8], at: usize, distance: usize) -> usize {
    let most = MOST.min(src.len() - at);
    let mut length = LEAST;
    while length + WORD <= most {
        let (here, there) = (at + length, at + length - distance);
        let bits = u64::from_le_bytes(load(src, here)) ^ u64::from_le_bytes(load(src, there));
        if bits != 0 {
            return length + bits.trailing_zeros() as usize / 8;
        }
        length += WORD;
    }
    while length < most && src[at + length] == src[at + length - distance] {
        length += 1;
    }
    length
}
