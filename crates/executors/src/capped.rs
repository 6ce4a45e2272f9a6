//! The beginning of something that may be endless.

/// The most bytes kept of what may become a job's result: a response's body, a line of a program's output.
pub(crate) const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Bytes up to a limit; what comes after is dropped, and remembered as dropped.
#[derive(Debug, Default)]
pub(crate) struct Capped {
    pub(crate) bytes: Vec<u8>,
    /// Whether something was dropped.
    pub(crate) cut: bool,
}

impl Capped {
    /// Takes what fits under `bytes_max`.
    pub(crate) fn push(&mut self, bytes: &[u8], bytes_max: usize) {
        let fits = bytes.len().min(bytes_max.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.cut |= fits < bytes.len();
    }

    /// What was kept as text, with an ellipsis where it was cut.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).trim().to_owned();
        if self.cut {
            text.push('…');
        }
        text
    }
}
