//! Memory that is freed stays with the process.

/// Tells glibc to serve large blocks from its heap and to keep what is freed.
///
/// A training step allocates and frees the same buffers of many megabytes again and again. By default glibc maps each
/// of them again and the system clears every page at first touch, which costs more than the arithmetic.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_memory() {
    // The largest threshold for mapping that glibc accepts.
    const MMAP: libc::c_int = 32 << 20;
    const TRIM: libc::c_int = 1 << 30;
    // SAFETY: mallopt only sets two numbers of the allocator; it is called before any thread is started. A value it
    // refuses changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM);
    }
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_memory() {}
