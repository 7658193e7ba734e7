//! Python's buffers as slices, open files as sources, and fresh bytes to write into.
//!
//! Python cannot promise that a buffer stays unchanged while the interpreter lock is released; the stub
//! tells callers that it must. The engine treats every byte it reads as hostile at each read, so a change
//! gives wrong results or an error, never an access outside the buffer.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::pin::Pin;

use pyo3::exceptions::{PyBufferError, PyMemoryError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use superchunk_io::memory::prefer_large_pages;
use superchunk_io::range::FileRange;
use superchunk_io::source::ChunkLocation;

/// A C-contiguous buffer. PyO3's own does not take arrays of no dimensions.
pub(crate) struct Buffer(Pin<Box<ffi::Py_buffer>>);

#[expect(unsafe_code, reason = "a view has pointers, which the compiler takes to be tied to its thread")]
// SAFETY: a view is a description of memory that any thread may read; it is released with the interpreter attached.
unsafe impl Send for Buffer {}

#[expect(unsafe_code, reason = "a view has pointers, which the compiler takes to be tied to its thread")]
// SAFETY: nothing changes the view once it is made.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Ask `object` for its bytes, wherever they are.
    fn get_any(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // Exporters may point into the view itself, so it stays where it is.
        let mut view = Box::pin(ffi::Py_buffer::new());
        #[expect(unsafe_code, reason = "the buffer protocol is the C API's")]
        // SAFETY: both pointers are valid, and the interpreter is attached.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) };
        if status != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self(view))
    }

    /// Ask `object` for its bytes.
    pub(crate) fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = Self::get_any(object)?;
        #[expect(unsafe_code, reason = "the buffer protocol is the C API's")]
        // SAFETY: the exporter has filled the view.
        let contiguous = unsafe { ffi::PyBuffer_IsContiguous(&raw const *buffer.0, b'C'.cast_signed()) };
        if contiguous == 0 {
            return Err(PyValueError::new_err("buffer: expected C-contiguous bytes, got a strided buffer"));
        }
        Ok(buffer)
    }

    /// Ask `object` for bytes to write to.
    pub(crate) fn get_writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = Self::get(object)?;
        if buffer.0.readonly != 0 {
            return Err(PyBufferError::new_err("dst: expected a writable buffer, got a read-only one"));
        }
        Ok(buffer)
    }

    fn len(&self) -> usize {
        if self.0.buf.is_null() { 0 } else { usize::try_from(self.0.len).unwrap_or(0) }
    }

    /// Whether a byte of one buffer is a byte of the other.
    fn overlaps(&self, other: &Self) -> bool {
        let ends = |buffer: &Self| (buffer.0.buf.addr(), buffer.0.buf.addr().saturating_add(buffer.len()));
        let ((start, stop), (other_start, other_stop)) = (ends(self), ends(other));
        start < other_stop && other_start < stop
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer and a length")]
        // SAFETY: the exporter keeps `len` contiguous bytes at `buf` in place until the buffer is released, which
        // happens when `self` is dropped. That they do not change is the caller's promise.
        unsafe {
            std::slice::from_raw_parts(self.0.buf.cast(), self.len())
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len() == 0 {
            return &mut [];
        }
        #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer and a length")]
        // SAFETY: as in `bytes`; `get_writable` has checked that the exporter allows writing. Nobody else
        // may use the bytes meanwhile, which is the caller's promise; chunks are kept apart by `Held::apart_from`.
        unsafe {
            slice_at(self.0.buf.cast(), self.len())
        }
    }
}

/// A buffer with its items anywhere, as the bytes from its lowest to its highest.
pub(crate) struct Span {
    buffer: Buffer,
    /// How far the lowest byte is from the first item.
    low: isize,
    length: usize,
}

impl Span {
    /// Ask `object` for its items.
    pub(crate) fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = Buffer::get_any(object)?;
        let view = &buffer.0;
        if view.strides.is_null() || view.shape.is_null() || buffer.len() == 0 {
            let length = buffer.len();
            return Ok(Self { buffer, low: 0, length });
        }
        if !view.suboffsets.is_null() {
            return Err(PyValueError::new_err("buffer: expected items in one piece of memory, got pointers to pieces"));
        }
        let ndim = usize::try_from(view.ndim).unwrap_or(0);
        #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer and a length")]
        // SAFETY: the exporter keeps an array of `ndim` numbers there as long as the view is not released.
        let shape = unsafe { std::slice::from_raw_parts(view.shape, ndim) };
        #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer and a length")]
        // SAFETY: as above.
        let strides = unsafe { std::slice::from_raw_parts(view.strides, ndim) };
        let ends = shape.iter().zip(strides).try_fold((0_isize, view.itemsize), |(low, high), (count, stride)| {
            let reach = count.checked_sub(1)?.checked_mul(*stride)?;
            Some((low.checked_add(reach.min(0))?, high.checked_add(reach.max(0))?))
        });
        let ends = ends.and_then(|(low, high)| Some((low, usize::try_from(high.checked_sub(low)?).ok()?)));
        let Some((low, length)) = ends else {
            return Err(PyValueError::new_err("buffer: expected an array in memory, got strides beyond it"));
        };
        Ok(Self { buffer, low, length })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer and strides")]
        // SAFETY: the protocol has all items of a view in one block of memory, which the exporter keeps in place
        // until the view is released, and `low` is the distance of one of them from `buf`.
        let start = unsafe { self.buffer.0.buf.cast::<u8>().offset(self.low) };
        #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer and strides")]
        // SAFETY: as above; `length` reaches to the end of the highest item. That the bytes do not change is the
        // caller's promise.
        unsafe {
            std::slice::from_raw_parts(start, self.length)
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        Python::attach(|_| {
            #[expect(unsafe_code, reason = "the buffer protocol is the C API's")]
            // SAFETY: the exporter has filled the view, and it is released this once.
            unsafe {
                ffi::PyBuffer_Release(&raw mut *self.0);
            }
        });
    }
}

/// What keeps a chunk's bytes reachable while the engine reads them.
pub(crate) enum Held {
    Buffer(Buffer),
    /// A copy of a buffer that shares bytes with the destination.
    Copy(Vec<u8>),
    File {
        file: ManuallyDrop<File>,
        offset: u64,
        limit: u64,
    },
    Path {
        path: PathBuf,
        folder: Option<ManuallyDrop<File>>,
        offset: u64,
        limit: u64,
    },
}

impl Held {
    /// Take a source: a buffer, `(fd, offset, limit)`, `(path, offset, limit)`, or `((folder, path), offset, limit)`.
    pub(crate) fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let (file, offset, limit): (Bound<'_, PyAny>, u64, u64) = tuple.extract()?;
            if file.is_instance_of::<PyString>() {
                return Ok(Self::Path { path: file.extract()?, folder: None, offset, limit });
            }
            if file.is_instance_of::<PyTuple>() {
                let (folder, path): (i32, PathBuf) = file.extract()?;
                return Ok(Self::Path { path, folder: Some(borrow_file(folder)?), offset, limit });
            }
            return Ok(Self::File { file: borrow_file(file.extract()?)?, offset, limit });
        }
        Ok(Self::Buffer(Buffer::get(object)?))
    }

    /// Take several.
    pub(crate) fn get_all(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<Self>> {
        objects.iter().map(Self::get).collect()
    }

    /// Take several, none of which shares bytes with `dst`.
    pub(crate) fn get_all_apart(objects: &[Bound<'_, PyAny>], dst: &Buffer) -> PyResult<Vec<Self>> {
        let mut all = Self::get_all(objects)?;
        for one in &mut all {
            one.apart_from(dst);
        }
        Ok(all)
    }

    /// Copy the chunk if any of its bytes are among those of `dst`, which is written while the chunk is read.
    pub(crate) fn apart_from(&mut self, dst: &Buffer) {
        if let Self::Buffer(buffer) = self
            && buffer.overlaps(dst)
        {
            *self = Self::Copy(buffer.bytes().to_vec());
        }
    }

    pub(crate) fn location(&self) -> ChunkLocation<'_> {
        match self {
            Self::Buffer(buffer) => ChunkLocation::Bytes(buffer.bytes()),
            Self::Copy(bytes) => ChunkLocation::Bytes(bytes),
            Self::File { file, offset, limit } => {
                ChunkLocation::File(FileRange { file, offset: *offset, limit: *limit })
            }
            Self::Path { path, folder, offset, limit } => {
                ChunkLocation::Path { path, folder: folder.as_deref(), offset: *offset, limit: *limit }
            }
        }
    }
}

/// View a descriptor as a file, without owning it.
#[cfg(unix)]
pub(crate) fn borrow_file(fd: i32) -> PyResult<ManuallyDrop<File>> {
    use std::os::fd::FromRawFd;
    if fd < 0 {
        return Err(PyValueError::new_err(format!("fd: expected an open file, got {fd}")));
    }
    #[expect(unsafe_code, reason = "a descriptor comes from Python as a number")]
    // SAFETY: the file is never dropped, so the descriptor is not closed here; only positioned reads are made
    // on it. That it stays open during the call is the caller's part; if not, the reads fail.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }))
}

#[cfg(windows)]
pub(crate) fn borrow_file(fd: i32) -> PyResult<ManuallyDrop<File>> {
    use std::os::windows::io::FromRawHandle;
    unsafe extern "C" {
        safe fn _get_osfhandle(fd: i32) -> isize;
    }
    let handle = if fd < 0 { -1 } else { _get_osfhandle(fd) };
    if handle == -1 || handle == -2 {
        return Err(PyValueError::new_err(format!("fd: expected an open file, got {fd}")));
    }
    #[expect(unsafe_code, reason = "a descriptor comes from Python as a number")]
    // SAFETY: the C library has just named this handle as open; it is never dropped, so not closed here.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_handle(handle as *mut _) }))
}

/// The bytes of memory that came from elsewhere, with whatever is in them.
///
/// # Safety
///
/// `length` bytes at `start` are readable and writable and stay in place as long as the slice lives, and nobody else uses them.
#[expect(unsafe_code, reason = "makes a slice of a pointer and a length")]
unsafe fn slice_at<'m>(start: *mut u8, length: usize) -> &'m mut [u8] {
    // Memory that nobody has written to, of a new bytes object or of `numpy.empty`, must not be taken for bytes by the compiler.
    // It cannot see into the assembly and has to assume that every byte is written there, to what is there anyway.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", target_arch = "arm"))]
    // SAFETY: there is no instruction in it.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", target_arch = "arm")))]
    // SAFETY: the bytes are writable.
    unsafe {
        start.write_bytes(0, length);
    }
    // SAFETY: as the caller promises, and the bytes have values.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

/// Make a bytes object of `length` bytes, all of which `fill` writes.
pub(crate) fn fresh_bytes(
    py: Python<'_>,
    length: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'_, PyBytes>> {
    let size = ffi::Py_ssize_t::try_from(length).map_err(|_| PyMemoryError::new_err("too many bytes"))?;
    #[expect(unsafe_code, reason = "a bytes object without an initial copy is to be had from the C API only")]
    // SAFETY: a null pointer asks for a bytes object whose content is to be set; null comes back with an exception.
    let pointer = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), size) };
    #[expect(unsafe_code, reason = "the new object comes as a pointer")]
    // SAFETY: the call above returned a reference that is ours, or null with an exception set.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, pointer)? };
    if length == 0 {
        // All objects without bytes are one.
        fill(&mut [])?;
        return Ok(object.cast_into::<PyBytes>()?);
    }
    #[expect(unsafe_code, reason = "the content of the new object is set through its pointer")]
    // SAFETY: the object is a bytes object.
    let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) };
    #[expect(unsafe_code, reason = "the content of the new object is set through its pointer")]
    // SAFETY: the object has `length` bytes, and nobody else has seen it.
    let content = unsafe { slice_at(start.cast::<u8>(), length) };
    prefer_large_pages(content);
    fill(content)?;
    Ok(object.cast_into::<PyBytes>()?)
}

/// Make a bytes object of at most `capacity` bytes: `fill` says how many it has written.
///
/// The stable ABI has no way to shorten a bytes object, so one that is shorter is a copy.
pub(crate) fn at_most(
    py: Python<'_>,
    capacity: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<usize>,
) -> PyResult<Bound<'_, PyBytes>> {
    let mut written = 0;
    let bytes = fresh_bytes(py, capacity, |content| {
        written = fill(content)?.min(capacity);
        Ok(())
    })?;
    Ok(if written == capacity { bytes } else { PyBytes::new(py, &bytes.as_bytes()[..written]) })
}
