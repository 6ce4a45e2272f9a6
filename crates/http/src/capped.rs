//! A byte buffer with a limit.

/// Bytes up to a limit. Further bytes are dropped, and `cut` is set.
#[derive(Debug, Default)]
pub struct Capped {
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// Whether bytes were dropped.
    pub cut: bool,
}

impl Capped {
    /// Appends the bytes that fit below `bytes_max`.
    pub fn push(&mut self, bytes: &[u8], bytes_max: usize) {
        let fits = bytes.len().min(bytes_max.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.cut |= fits < bytes.len();
    }

    /// Returns the bytes as text, with an ellipsis if bytes were dropped.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).trim().to_owned();
        if self.cut {
            text.push('…');
        }
        text
    }
}
