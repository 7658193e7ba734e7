//! What is asked of files beyond reading them: open one by name, notice that one was changed
//! or replaced, make a whole file system durable.
//!
//! Names come from containers that anybody may have written, so only regular files are opened: a
//! link is not followed, and a pipe or a device is never waited for.

use std::ffi::CStr;
use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::range::FileRange;
use superchunk_engine::Result;
use superchunk_engine::source::ReadAt as _;

use crate::error::Error;

/// "Invalid argument", on every system; a name with a zero byte in it does not even reach the system.
const EINVAL: i32 = 22;
/// Of what was written longer ago nothing waits in memory for a disk: many times the system's half a minute.
const WRITTEN_BACK: Duration = Duration::from_secs(600);

/// Open the regular file of that name for reading.
///
/// # Errors
///
/// [`Error::Open`] when the system does not open it, a symbolic link for one; [`Error::NotAFile`] for
/// anything but a regular file.
pub fn open(path: &Path) -> Result<File, Error> {
    regular(path, without_following(OpenOptions::new().read(true)).open(path))
}

/// Open the regular file for reading that has the last part of `path` for a name in an open directory.
///
/// The rest of `path` is for errors: something else may have the directory's name by now.
///
/// # Errors
///
/// As [`open`].
#[cfg(unix)]
pub fn open_in(folder: &File, path: &Path) -> Result<File, Error> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let name = path.file_name().unwrap_or(path.as_os_str());
    regular(path, openat(folder, name, flags, Mode::empty()).map(File::from).map_err(io::Error::from))
}

/// Nothing else can have the name of an open directory there.
///
/// # Errors
///
/// As [`open`].
#[cfg(windows)]
pub fn open_in(_: &File, path: &Path) -> Result<File, Error> {
    open(path)
}

/// Return what was opened if it is a regular file.
fn regular(path: &Path, opened: io::Result<File>) -> Result<File, Error> {
    let fail = |error: io::Error| Error::Open { path: path.to_owned(), errno: error.raw_os_error().unwrap_or(EINVAL) };
    let file = opened.map_err(fail)?;
    let kind = file.metadata().map_err(fail)?.file_type();
    if !kind.is_file() {
        return Err(Error::NotAFile { path: path.to_owned(), found: name_of(kind) });
    }
    Ok(file)
}

/// The standard library adds `O_CLOEXEC` by itself.
#[cfg(unix)]
fn without_following(options: &mut OpenOptions) -> &OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
}

#[cfg(windows)]
fn without_following(options: &mut OpenOptions) -> &OpenOptions {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

#[cfg(unix)]
fn name_of(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

#[cfg(windows)]
fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() { "a directory" } else { "a link" }
}

/// When a file was last written, and how long it is.
///
/// Two looks that find the same stamp have nothing written between them, if the first came some time after what the
/// stamp tells of: a clock that ticks between. That holds for calls that write. Writes through a shared mapping move
/// the times only when they make a clean page dirty, see [`Stamp::is_lasting`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    length: i64,
}

impl Stamp {
    #[cfg(unix)]
    #[allow(
        clippy::cast_lossless,
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "the widths and signs of these numbers differ between systems"
    )]
    fn of(found: &rustix::fs::Stat) -> Self {
        Self {
            modified: (found.st_mtime as i64, found.st_mtime_nsec as i64),
            changed: (found.st_ctime as i64, found.st_ctime_nsec as i64),
            length: found.st_size as i64,
        }
    }

    #[cfg(test)]
    pub(crate) fn of_long_ago(self) -> Self {
        Self { modified: (1, 1), changed: (1, 1), ..self }
    }

    /// Whether the file system's clock may tick so slowly as to count whole seconds.
    #[must_use]
    pub fn is_coarse(&self) -> bool {
        self.modified.1 == 0 && self.changed.1 == 0
    }

    /// Whether writes through mappings would have moved it, too: on a file system whose pages the system writes to a disk,
    /// usually after half a minute, none that was dirty at the time of this stamp is dirty any more.
    #[must_use]
    pub fn is_lasting(&self, written_back: bool) -> bool {
        written_back && self.is_older_than(WRITTEN_BACK)
    }

    /// Whether the last write was longer ago, by the clock of this machine.
    #[must_use]
    pub fn is_older_than(&self, age: Duration) -> bool {
        let last = u64::try_from(self.modified.0.max(self.changed.0)).unwrap_or(u64::MAX);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(age).is_some_and(|limit| limit > Duration::from_secs(last.saturating_add(1)))
    }
}

/// Whether the bytes at `at` are others than `probe`.
///
/// # Errors
///
/// [`superchunk_engine::Error::Io`] when the system fails to read.
pub fn differs(file: &File, at: u64, probe: &[u8]) -> Result<bool> {
    let range = FileRange { file, offset: at, limit: probe.len() as u64 };
    let mut found = [0; 512];
    let mut done = 0;
    for expected in probe.chunks(found.len()) {
        let found = &mut found[..expected.len()];
        if range.read_some(done, found)? < expected.len() || found != expected {
            return Ok(true);
        }
        done += expected.len() as u64;
    }
    Ok(false)
}

/// Fill `found` from byte `at` if that needs no waiting. Returns whether it did.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[must_use]
pub fn read_at_once(file: &File, at: u64, found: &mut [u8]) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let length = found.len();
    preadv2(file, &mut [io::IoSliceMut::new(found)], at, ReadWriteFlags::NOWAIT).is_ok_and(|read| read == length)
}

/// There is no such call there.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[must_use]
pub fn read_at_once(_: &File, _: u64, _: &mut [u8]) -> bool {
    false
}

/// Whether the system writes all pages of the file to a disk in time, as far as the kind of file system tells.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[must_use]
pub fn is_written_back(file: &File) -> bool {
    /// ext2 to ext4, XFS, Btrfs, F2FS.
    const DISKS: [u32; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];
    // The width of the kind differs between systems.
    rustix::fs::fstatfs(file).is_ok_and(|found| DISKS.iter().any(|&kind| u32::try_from(found.f_type) == Ok(kind)))
}

/// Nothing is known of other systems.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[must_use]
pub fn is_written_back(_: &File) -> bool {
    false
}

/// The stamp of a file that has a name; None for one that has lost it.
///
/// # Errors
///
/// [`superchunk_engine::Error::Io`], about byte `at`, when the system does not tell.
#[cfg(unix)]
pub fn status(file: &File, at: u64) -> Result<Option<Stamp>> {
    let found = rustix::fs::fstat(file).map_err(|error| superchunk_engine::Error::Io {
        at,
        length: 0,
        errno: error.raw_os_error(),
    })?;
    Ok((found.st_nlink > 0).then_some(Stamp::of(&found)))
}

/// An open file cannot lose its name there, and its stamp always is as if it came from a slow clock.
///
/// # Errors
///
/// [`superchunk_engine::Error::Io`], about byte `at`, when the system does not tell.
#[cfg(windows)]
pub fn status(file: &File, at: u64) -> Result<Option<Stamp>> {
    use std::os::windows::fs::MetadataExt;
    let fail = |error: io::Error| superchunk_engine::Error::Io {
        at,
        length: 0,
        errno: error.raw_os_error().unwrap_or(EINVAL),
    };
    let found = file.metadata().map_err(fail)?;
    // It counts tenths of microseconds, from another year on.
    let seconds = (found.last_write_time() / 10_000_000).cast_signed() - 11_644_473_600;
    let modified = (seconds, 0);
    Ok(Some(Stamp { modified, changed: (0, 0), length: found.file_size().cast_signed() }))
}

/// Device and number of a file.
#[cfg(unix)]
pub type Identity = (rustix::fs::Dev, u64);
/// Device and number of a file.
#[cfg(windows)]
pub type Identity = (u64, u64);

/// What tells the open `file` from all others.
///
/// # Errors
///
/// What the system says.
#[cfg(unix)]
pub fn identity(file: &File) -> io::Result<Identity> {
    let status = rustix::fs::fstat(file)?;
    Ok((status.st_dev, status.st_ino))
}

/// An open file cannot be replaced there.
///
/// # Errors
///
/// None.
#[cfg(windows)]
pub fn identity(_: &File) -> io::Result<Identity> {
    Ok((0, 0))
}

/// A name in an open directory, and the file that it is expected to lead to.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The directory.
    pub folder: &'a File,
    /// The name there.
    pub name: &'a CStr,
    /// The file.
    pub identity: Identity,
}

impl Named<'_> {
    /// The stamp of the file; None if the name, not what a link there leads to, is another file, or nothing.
    #[cfg(unix)]
    #[must_use]
    pub fn status(&self, _file: &File) -> Option<Stamp> {
        use rustix::fs::{AtFlags, statat};
        let found = statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        ((found.st_dev, found.st_ino) == self.identity).then(|| Stamp::of(&found))
    }

    /// An open file cannot be replaced there.
    #[cfg(windows)]
    #[must_use]
    pub fn status(&self, file: &File) -> Option<Stamp> {
        status(file, 0).ok().flatten()
    }
}

/// Have everything on the disk that was written to the file system of `file`.
///
/// # Errors
///
/// What the system says; of the kind `Unsupported` where there is no such call.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn sync_filesystem(file: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}

/// Have everything on the disk that was written to the file system of `file`.
///
/// # Errors
///
/// Of the kind `Unsupported`: there is no such call here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn sync_filesystem(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Give `old` the name `new`, which nothing may have.
///
/// # Errors
///
/// What the system says, of the kind `AlreadyExists` if something has the name; of the kind `Unsupported` where the
/// system or the file system has no such call.
pub fn rename_new(old: &Path, new: &Path) -> io::Result<()> {
    rename_with(old, new, false)
}

/// Let `one` and `other`, which both exist, change their names in one step.
///
/// # Errors
///
/// As for [`rename_new`].
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    rename_with(one, other, true)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_with(old: &Path, new: &Path, exchange: bool) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    let flags = if exchange { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    match renameat_with(CWD, old, CWD, new, flags) {
        // What a file system answers that does not know the flag; a name that cannot be renamed gets it too.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
        done => Ok(done?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_with(_: &Path, _: &Path, _: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A new directory, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("superchunk-files-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_is_taken_only_if_it_is_free_and_two_names_change_places() {
        let folder = Folder::new("rename");
        let (one, other) = (folder.0.join("one"), folder.0.join("other"));
        std::fs::write(&one, b"1").unwrap();
        rename_new(&one, &other).unwrap();
        std::fs::write(&one, b"2").unwrap();
        assert_eq!(rename_new(&one, &other).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&other).unwrap(), b"1");
        exchange(&one, &other).unwrap();
        assert_eq!((std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap()), (b"1".to_vec(), b"2".to_vec()));
        std::fs::remove_file(&one).unwrap();
        assert_eq!(exchange(&one, &other).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = Folder::new("regular");
        let file = folder.0.join("file");
        std::fs::write(&file, b"content").unwrap();
        assert!(open(&file).is_ok());
        let missing = folder.0.join("missing");
        assert_eq!(open(&missing).map(drop), Err(Error::Open { path: missing.clone(), errno: 2 }));
        #[cfg(unix)]
        {
            assert_eq!(
                open(&folder.0).map(drop),
                Err(Error::NotAFile { path: folder.0.clone(), found: "a directory" })
            );
            std::os::unix::fs::symlink(&file, &missing).unwrap();
            let errno = rustix::io::Errno::LOOP.raw_os_error();
            assert_eq!(open(&missing).map(drop), Err(Error::Open { path: missing.clone(), errno }));
            // An open directory is reached by any name.
            let parent = File::open(&folder.0).unwrap();
            let elsewhere = PathBuf::from("elsewhere/file");
            assert!(open_in(&parent, &elsewhere).is_ok());
            assert_eq!(
                open_in(&parent, Path::new("elsewhere/missing")).map(drop),
                Err(Error::Open { path: PathBuf::from("elsewhere/missing"), errno })
            );
            std::fs::create_dir(folder.0.join("inner")).unwrap();
            assert_eq!(
                open_in(&parent, Path::new("elsewhere/inner")).map(drop),
                Err(Error::NotAFile { path: PathBuf::from("elsewhere/inner"), found: "a directory" })
            );
            std::fs::remove_file(&file).unwrap();
            assert_eq!(open_in(&parent, &elsewhere).map(drop), Err(Error::Open { path: elsewhere.clone(), errno: 2 }));
            let odd = PathBuf::from("a\0b");
            assert!(open_in(&parent, &odd).is_err());
            assert_eq!(open(&odd).map(drop), Err(Error::Open { path: odd.clone(), errno: EINVAL }));
        }
    }

    #[test]
    fn other_bytes_and_another_file_under_the_name_are_noticed() {
        let folder = Folder::new("change");
        let path = folder.0.join("file");
        let content: Vec<u8> = (0..1500_u32).map(|n| n.to_le_bytes()[0]).collect();
        std::fs::write(&path, &content).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(differs(&file, 0, &content), Ok(false));
        assert_eq!(differs(&file, 100, &content[100..]), Ok(false));
        assert_eq!(differs(&file, 1500, b""), Ok(false));
        for at in [0, 511, 512, 1499] {
            let mut other = content.clone();
            other[at] ^= 1;
            assert_eq!(differs(&file, 0, &other), Ok(true), "byte {at}");
        }
        // A probe that reaches beyond the file.
        assert_eq!(differs(&file, 1, &content), Ok(true));
        assert_eq!(differs(&file, 1500, b"x"), Ok(true));
        #[cfg(unix)]
        {
            let parent = File::open(&folder.0).unwrap();
            let identity = identity(&file).unwrap();
            let found = |name| Named { folder: &parent, name, identity }.status(&file);
            assert_eq!(found(c"file"), status(&file, 0).unwrap());
            assert_eq!(found(c"missing"), None);
            let other = folder.0.join("other");
            std::os::unix::fs::symlink(&path, &other).unwrap();
            assert_eq!(found(c"other"), None);
            std::fs::write(&other, b"").unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!(status(&file, 0), Ok(None));
            assert_eq!(found(c"file"), None);
        }
    }
}
