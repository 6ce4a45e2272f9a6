//! The progress bar on stderr while a file is processed. It is shown only on a terminal.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over the bytes of a file that also counts its records.
pub(crate) struct Bar {
    bar: ProgressBar,
    items: &'static str,
    started: Instant,
}

impl Bar {
    /// Creates a bar for an activity (`checking`, `enqueueing`) over `bytes` bytes with the given items (`jobs`).
    pub(crate) fn new(what: &'static str, items: &'static str, bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
        let template = "{prefix:>10} [{wide_bar}] {bytes}/{total_bytes}, {msg}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        bar.set_message(format!("0 {items}"));
        Self { bar, items, started: Instant::now() }
    }

    /// Sets the number of bytes and items processed so far.
    pub(crate) fn reached(&self, bytes: u64, count: u64) {
        self.bar.set_message(format!("{count} {}, {}/s", self.items, self.rate(count)));
        self.bar.set_position(bytes);
    }

    /// Returns the rate in items per second.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "for people"
    )]
    pub(crate) fn rate(&self, count: u64) -> u64 {
        (count as f64 / self.started.elapsed().as_secs_f64().max(0.001)) as u64
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
