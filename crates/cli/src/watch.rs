//! Repetition of a command's output: `--watch`.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use milepost_cli_support::output;

/// The pause between two outputs.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Moves to the top left corner of the terminal, and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Whether there is more to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It can change.
    GoesOn,
    /// It has ended.
    Ended,
}

/// Prints again and again until `print` returns [`Watched::Ended`], or until a signal. A terminal shows the newest output only; elsewhere, an empty
/// line separates two outputs.
pub(crate) async fn repeat(mut print: impl AsyncFnMut() -> Result<Watched>) -> Result<()> {
    let is_terminal = io::stdout().is_terminal();
    let mut is_first = true;
    loop {
        if is_terminal {
            write!(io::stdout().lock(), "{CLEAR}")?;
        } else if !is_first {
            output::line("")?;
        }
        is_first = false;
        if print().await? == Watched::Ended {
            return Ok(());
        }
        io::stdout().lock().flush()?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
