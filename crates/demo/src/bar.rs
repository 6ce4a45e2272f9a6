//! The demo's progress on stderr: a bar on a terminal, and lines for important events.

use std::fmt::Display;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use milepost_cli_support::output;

/// The progress bar of one phase. It is shown only on a terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Creates a bar of `units` units for an activity (`enqueue`, `run`).
    pub(super) fn new(phase: &'static str, units: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr());
        let template = "{prefix:>8} [{bar:24}] {human_pos}/{human_len} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(phase);
        Self(bar)
    }

    /// Sets the number of completed units.
    pub(super) fn reached(&self, units: u64) {
        self.0.set_position(units);
    }

    /// Adds completed units.
    pub(super) fn advance(&self, units: u64) {
        self.0.inc(units);
    }

    /// Sets the message beside the bar.
    pub(super) fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// Prints a line above the bar.
    pub(super) fn note(&self, text: impl Display) {
        self.0.suspend(|| output::note(text));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
