//! How much memory the process has used at most.

/// Peak resident memory of this process in MB (10⁶ bytes): `VmHWM` of `/proc/self/status`; `None` where there is none.
pub fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn peak_counts_what_was_touched() {
        let held = vec![1u8; 64 << 20];
        std::hint::black_box(&held);
        assert!(super::peak_mb().unwrap() > 64.0);
    }
}
