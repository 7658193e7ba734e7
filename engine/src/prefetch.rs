//! Asking for memory before it is needed.
//!
//! A processor foresees which bytes come next, but not beyond a page and not far. Kernels that read or write several planes
//! ask for each some lines ahead, so that more lines are on their way at a time.

/// Ask for the line of the byte that is `ahead` of the first one, wherever that is: it is a hint.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = bytes.as_ptr().wrapping_add(ahead);
        #[expect(unsafe_code, reason = "a hint takes a pointer")]
        // SAFETY: a prefetch reads nothing that the program could see, and any address may be given to it.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    let _ = (bytes, ahead);
}
