//! The program's output: command results go to stdout, everything else to stderr.

use std::fmt::{Display, Write as _};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use serde::Serialize;
use serde_json::json;

use crate::log_format::{self, LogFormat};
use milepost_core::text::is_unprintable;

/// The result of a command that did not fail as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything succeeded.
    Done,
    /// Some of the requested items failed; each failure was reported.
    SomeFailed,
    /// The result is unknown, at least in part; the reason was reported.
    Undecided,
    /// The arguments or the configuration are unusable; the reason was reported.
    WrongUsage,
    /// A signal ended the command immediately.
    Interrupted(u8),
}

/// Returns whether a file is the null device, to which closed streams lead as well.
pub fn is_null(about: &Metadata) -> bool {
    let null = std::fs::metadata("/dev/null");
    about.file_type().is_char_device() && null.is_ok_and(|null| null.rdev() == about.rdev())
}

/// Returns whether what is written to stdout is lost: it is closed, or leads to the null device.
pub fn is_lost() -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    stdout.and_then(|stdout| stdout.metadata()).is_ok_and(|about| is_null(&about))
}

/// Prints a line that reports a completed change; see [`heard_or_not`].
pub fn change(text: impl Display) -> anyhow::Result<()> {
    heard_or_not(line(text).map_err(Into::into))
}

/// Prints one line to stdout.
pub fn line(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Prints a value as one JSON document.
pub fn json(document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    Ok(line(text)?)
}

/// Returns whether an error means that the reader of the output closed the pipe, as `head` does.
pub fn is_unheard(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// Ignores a closed output pipe. For reports of completed changes: the change succeeded even if its report is not read.
pub fn heard_or_not(told: anyhow::Result<()>) -> anyhow::Result<()> {
    told.or_else(|error| if is_unheard(&error) { Ok(()) } else { Err(error) })
}

/// Writes a note to stderr. It is lost when stderr is closed, which is acceptable.
pub fn note(text: impl Display) {
    remark("INFO", "", text);
}

/// Asks for confirmation. Returns `None` when stdin or stderr is not a terminal.
pub fn confirmed(question: impl Display) -> io::Result<Option<bool>> {
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

/// Reports a message that ends the command.
pub fn fault(text: impl Display) {
    remark("ERROR", "", text);
}

/// Reports an error with its causes.
pub fn error(error: &anyhow::Error) {
    remark("ERROR", "error: ", causes(error));
}

/// Writes a line to stderr in the format of the log. The prefix is written in text format only.
fn remark(level: &str, prefix: &str, text: impl Display) {
    let _ = match log_format::format() {
        // Messages repeat arguments and parts of files.
        LogFormat::Text => writeln!(io::stderr().lock(), "{prefix}{}", printable(&text.to_string())),
        LogFormat::Json => {
            let (timestamp, message) = (jiff::Timestamp::now(), text.to_string());
            let object = json!({ "timestamp": timestamp, "level": level, "message": message.trim_end(), "target": "milepost" });
            writeln!(io::stderr().lock(), "{object}")
        }
    };
}

/// Formats an error with its causes, one per line; a cause that the text already contains is omitted.
pub fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let words = cause.to_string();
        if !text.contains(&words) {
            let _ = write!(text, "\n  because: {words}");
        }
    }
    text
}

/// Returns whether colours may be used on this stream.
pub fn colours_on(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !refused
}

/// Replaces characters in stored text that could control a terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if is_unprintable(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c })
        .collect()
}
