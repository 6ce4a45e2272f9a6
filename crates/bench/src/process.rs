//! Resource usage of this process, as reported by the kernel.

/// Returns the peak memory usage (RSS) so far, in MB.
pub(super) fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    field(&status, "VmHWM:").map(|kb| (kb / 102.4).round() / 10.0)
}

/// Returns the number of bytes written to storage so far.
pub(super) fn written_bytes() -> Option<f64> {
    field(&std::fs::read_to_string("/proc/self/io").ok()?, "write_bytes:")
}

fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
