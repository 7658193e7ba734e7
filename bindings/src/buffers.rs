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
use superchunk_engine::memory::prefer_large_pages;
use superchunk_engine::source::{Place, Source};

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
        // may use the bytes meanwhile, which is the caller's promise.
        unsafe {
            std::slice::from_raw_parts_mut(self.0.buf.cast(), self.len())
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
    File { file: ManuallyDrop<File>, offset: u64, limit: u64 },
    Path { path: PathBuf, folder: Option<ManuallyDrop<File>>, offset: u64, limit: u64 },
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

    pub(crate) fn place(&self) -> Place<'_> {
        match self {
            Self::Buffer(buffer) => Source::Bytes(buffer.bytes()).into(),
            Self::File { file, offset, limit } => Source::File { file, offset: *offset, limit: *limit }.into(),
            Self::Path { path, folder, offset, limit } => {
                Place::Path { path, folder: folder.as_deref(), offset: *offset, limit: *limit }
            }
        }
    }
}

/// Look at a descriptor as a file, without owning it.
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

#[expect(unsafe_code, reason = "declares one function of the C API")]
unsafe extern "C" {
    // Part of Python's stable ABI; PyO3 does not hand it on.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, newsize: ffi::Py_ssize_t) -> std::ffi::c_int;
}

/// Make a bytes object of at most `capacity` bytes: `fill` writes into it and says how many count.
pub(crate) fn fresh_bytes(
    py: Python<'_>,
    capacity: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<usize>,
) -> PyResult<Bound<'_, PyBytes>> {
    let length = ffi::Py_ssize_t::try_from(capacity).map_err(|_| PyMemoryError::new_err("too many bytes"))?;
    #[expect(unsafe_code, reason = "a bytes object without an initial copy is to be had from the C API only")]
    // SAFETY: a null pointer asks for a bytes object whose content is to be set; null comes back with an exception.
    let pointer = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), length) };
    #[expect(unsafe_code, reason = "the new object comes as a pointer")]
    // SAFETY: the call above returned a reference that is ours, or null with an exception set.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, pointer)? };
    #[expect(unsafe_code, reason = "the content of the new object is set through its pointer")]
    // SAFETY: the object is a bytes object.
    let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) };
    #[expect(unsafe_code, reason = "the content of the new object is set through its pointer")]
    // SAFETY: the object has `capacity` bytes and nobody else has seen it. Every caller writes each byte that it
    // declares to count; a decoder may load bytes in words before it has written all of them, but keeps only those
    // that it has written.
    let content = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), capacity) };
    prefer_large_pages(content);
    let filled = fill(content)?.min(capacity);
    if filled == capacity {
        return Ok(object.cast_into::<PyBytes>()?);
    }
    let shorter = ffi::Py_ssize_t::try_from(filled).map_err(|_| PyMemoryError::new_err("too many bytes"))?;
    let mut pointer = object.into_ptr();
    #[expect(unsafe_code, reason = "shrinking in place spares a copy")]
    // SAFETY: the only reference is ours and no hash was computed; on failure the pointer is set to null.
    let status = unsafe { _PyBytes_Resize(&raw mut pointer, shorter) };
    if status != 0 {
        return Err(PyErr::fetch(py));
    }
    #[expect(unsafe_code, reason = "the resized object comes back as a pointer")]
    // SAFETY: on success the pointer is the one reference to a bytes object.
    let object = unsafe { Bound::from_owned_ptr(py, pointer) };
    Ok(object.cast_into::<PyBytes>()?)
}
