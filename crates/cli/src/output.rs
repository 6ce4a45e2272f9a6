//! Everything that is printed goes through here: answers to stdout, all else to stderr.

use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, IsTerminal, Write};

use serde::Serialize;
use serde_json::json;

use crate::log::{self, LogFormat};
use milepost_core::text::is_unprintable;

/// How a command ended that did not fail as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All of it was done.
    Done,
    /// Several things were asked for and some failed; each was reported.
    SomeFailed,
    /// It cannot be said, or not of everything, whether all is well; it was told why.
    Undecided,
    /// What was given cannot be used; it was told why.
    WrongUsage,
    /// A signal ended it at once.
    Interrupted(u8),
}

/// A line that tells what was done, [heard or not](heard_or_not).
pub(crate) fn deed(text: impl Display) -> anyhow::Result<()> {
    heard_or_not(line(text).map_err(Into::into))
}

/// A line of the answer.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// The answer as one JSON document.
pub(crate) fn json(document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    Ok(line(text)?)
}

/// Whether the reader of our output has gone, as `head` does.
pub(crate) fn is_unheard(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// For what is told of deeds: they are done, and how they went is so, whether or not somebody reads it.
pub(crate) fn heard_or_not(told: anyhow::Result<()>) -> anyhow::Result<()> {
    told.or_else(|error| if is_unheard(&error) { Ok(()) } else { Err(error) })
}

/// A remark for people. It is lost when stderr is closed, and that is fine.
pub(crate) fn note(text: impl Display) {
    remark("INFO", "", text);
}

/// Asks for a yes. `None` when there is nobody who could answer.
pub(crate) fn confirmed(question: impl Display) -> io::Result<Option<bool>> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(None);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")))
}

/// What ends the command.
pub(crate) fn fault(text: impl Display) {
    remark("ERROR", "", text);
}

/// A failure with its causes.
pub(crate) fn error(error: &anyhow::Error) {
    remark("ERROR", "error: ", causes(error));
}

/// A line on stderr, in the form that the log has; the prefix is for people.
fn remark(level: &str, prefix: &str, text: impl Display) {
    let _ = match log::format() {
        LogFormat::Text => writeln!(io::stderr().lock(), "{prefix}{text}"),
        LogFormat::Json => {
            let (timestamp, message) = (jiff::Timestamp::now(), text.to_string());
            let object = json!({ "timestamp": timestamp, "level": level, "message": message.trim_end(), "target": "milepost" });
            writeln!(io::stderr().lock(), "{object}")
        }
    };
}

/// An error with its causes, one a line; a cause whose words were said already is left out.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let words = cause.to_string();
        if !text.contains(&words) {
            let _ = write!(text, "\n  because: {words}");
        }
    }
    text
}

/// Whether colours may be used on this stream.
pub(crate) fn colours_on(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !refused
}

/// Text from a store, without what could drive a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) && c != '\n' { '\u{fffd}' } else { c }).collect()
}
