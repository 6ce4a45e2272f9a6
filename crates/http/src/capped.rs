//! The beginning of something that may be endless.

/// Bytes up to a limit; what comes after is dropped, and remembered as dropped.
#[derive(Debug, Default)]
pub struct Capped {
    /// What was kept.
    pub bytes: Vec<u8>,
    /// Whether something was dropped.
    pub cut: bool,
}

impl Capped {
    /// Takes what fits under `bytes_max`.
    pub fn push(&mut self, bytes: &[u8], bytes_max: usize) {
        let fits = bytes.len().min(bytes_max.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.cut |= fits < bytes.len();
    }

    /// What was kept as text, with an ellipsis where it was cut.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).trim().to_owned();
        if self.cut {
            text.push('…');
        }
        text
    }
}
