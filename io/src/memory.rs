//! What the engine asks of the system about memory that it is about to fill.

pub mod buffer_pool;

/// Memory of fewer bytes is left as it is.
const LARGE: usize = 4 * 1024 * 1024;
/// Bytes of a page, at least: an address of a page is a multiple of it.
#[cfg(target_os = "linux")]
const PAGE: usize = 4096;

/// Ask for large pages under `bytes`, which are fresh and will all be written: the first write to a page stops for
/// the system to clear it, and with large pages that happens 512 times less often. Nothing changes if the system
/// does not have them, or does not want to give them.
pub fn prefer_large_pages(bytes: &mut [u8]) {
    if bytes.len() < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let skip = bytes.as_ptr().align_offset(PAGE).min(bytes.len());
        let whole = &mut bytes[skip..];
        let length = whole.len() - whole.len() % PAGE;
        #[expect(unsafe_code, reason = "a system call about memory")]
        // SAFETY: the pages are exclusively held, and this advice leaves what is in them as it is.
        let _ = unsafe { madvise(whole.as_mut_ptr().cast(), length, Advice::LinuxHugepage) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_stays() {
        for length in [0, 1, LARGE - 1, LARGE, LARGE + 5000] {
            let mut bytes: Vec<u8> = (0..length).map(|n| n.to_le_bytes()[0]).collect();
            prefer_large_pages(&mut bytes);
            assert!(bytes.iter().enumerate().all(|(n, &byte)| byte == n.to_le_bytes()[0]));
        }
    }
}
