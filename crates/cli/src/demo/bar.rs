//! What people see on stderr while the demo runs: a bar on a terminal, and a line for all that matters.

use std::fmt::Display;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// The bar of one phase. It shows only on a terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar of so many units for what is done (`enqueue`, `run`).
    pub(super) fn new(phase: &'static str, units: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr());
        let template = "{prefix:>8} [{bar:24}] {human_pos}/{human_len} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(phase);
        Self(bar)
    }

    /// So far.
    pub(super) fn reached(&self, units: u64) {
        self.0.set_position(units);
    }

    /// One more batch.
    pub(super) fn advance(&self, units: u64) {
        self.0.inc(units);
    }

    /// What is going on now.
    pub(super) fn say(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// A line that stays.
    pub(super) fn note(&self, text: impl Display) {
        self.0.suspend(|| output::note(text));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
