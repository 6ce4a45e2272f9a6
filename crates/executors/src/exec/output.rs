//! Output of a program: progress and a result on standard output, diagnostics on standard error.

use std::collections::VecDeque;

use milepost::Context;
use milepost_core::secrets::Secrets;
use milepost_http::Capped;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use super::process::Pipes;
use crate::result::RESULT_BYTES_MAX;

/// The prefix of a progress line.
const PROGRESS: &str = "MILEPOST_PROGRESS";
/// The most bytes in one read.
const READ_BYTES_MAX: usize = 8 * 1024;
/// How many bytes of the end of standard error are kept.
const STDERR_BYTES_MAX: usize = 4 * 1024;
/// The longest message of a progress line, in bytes.
const MESSAGE_BYTES_MAX: usize = 1000;

/// The output of a program so far, in bounded memory.
pub(super) struct Output {
    stdout: Lines,
    stderr: Tail,
}

impl Output {
    pub(super) fn new(context: &Context, secrets: &Secrets) -> Self {
        let (context, secrets) = (context.clone(), secrets.clone());
        let stdout = Lines { context, secrets, current: Capped::default(), last: Capped::default() };
        Self { stdout, stderr: Tail::default() }
    }

    /// Writes the input to the program and reads its output until it closes both streams.
    pub(super) async fn listen(&mut self, pipes: Pipes, input: &[u8]) {
        let Self { stdout, stderr } = self;
        tokio::join!(
            feed(pipes.stdin, input),
            read(pipes.stdout, |bytes| stdout.push(bytes)),
            read(pipes.stderr, |bytes| stderr.push(bytes)),
        );
    }

    /// Returns the last line of standard output that is neither blank nor progress.
    pub(super) fn last_line(&mut self) -> &Capped {
        self.stdout.end_line();
        &self.stdout.last
    }

    /// Returns the end of standard error without secrets, formatted to follow an error message.
    pub(super) fn last_words(&self, secrets: &Secrets) -> String {
        last_words(&self.stderr, secrets)
    }
}

fn last_words(stderr: &Tail, secrets: &Secrets) -> String {
    // Before anything is put in front of it: only at the start of a text is the end of a secret recognized.
    match secrets.hide(stderr.text()) {
        text if text.is_empty() => String::new(),
        text => format!("; the end of its stderr:\n{text}"),
    }
}

/// Writes the input. A program may close its input without reading it; that is not an error.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
    }
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; READ_BYTES_MAX];
    while let Ok(bytes @ 1..) = pipe.read(&mut buffer).await {
        take(&buffer[..bytes]);
    }
}

/// Standard output, line by line.
struct Lines {
    context: Context,
    secrets: Secrets,
    current: Capped,
    last: Capped,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let line = piece.strip_suffix(b"\n");
            self.current.push(line.unwrap_or(piece), RESULT_BYTES_MAX);
            if line.is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.current);
        if let Some(progress) = line.bytes.strip_prefix(PROGRESS.as_bytes()) {
            // Before the message is truncated.
            let progress = self.secrets.hide(String::from_utf8_lossy(progress).into_owned());
            if let Some((done, total, message)) = progress_of(&progress) {
                self.context.progress(done, total, message);
                return;
            }
        }
        if !line.bytes.trim_ascii().is_empty() {
            self.last = line;
        }
    }
}

/// Parses `done/total message`, where total and message are optional; `None` if the text has another form.
fn progress_of(text: &str) -> Option<(i64, Option<i64>, Option<String>)> {
    let text = text.strip_prefix([' ', '\t'])?.trim();
    let (numbers, message) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (done, total) = match numbers.split_once('/') {
        Some((done, total)) => (done, Some(total.parse().ok()?)),
        None => (numbers, None),
    };
    let message = message.trim();
    let message = &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
    Some((done.parse().ok()?, total, (!message.is_empty()).then(|| message.to_owned())))
}

/// The end of a stream.
#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(STDERR_BYTES_MAX);
        self.bytes.drain(..surplus);
        self.cut |= surplus > 0;
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches([' ', '\n', '\r', '\t', '\u{fffd}']);
        if self.cut { format!("…{text}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_done_of_total_and_a_message() {
        assert_eq!(progress_of(" 3/10 mails sent"), Some((3, Some(10), Some("mails sent".to_owned()))));
        assert_eq!(progress_of(" 3"), Some((3, None, None)));
        assert_eq!(progress_of("\t3/10 "), Some((3, Some(10), None)));
        for other in ["", " ", " half", " 3/x", "3/4", " /4"] {
            assert_eq!(progress_of(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_end_of_a_stream_is_kept_and_no_more() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(&[b'x'; READ_BYTES_MAX]);
            assert!(tail.bytes.len() <= STDERR_BYTES_MAX);
        }
        tail.push(b"the end\n");
        assert!(tail.text().starts_with("…xxx") && tail.text().ends_with("the end"));
    }

    #[test]
    fn a_secret_that_is_cut_at_the_start_of_the_end_is_hidden() {
        let secret = "s3cret-of-twenty-bytes";
        let secrets = Secrets::new([secret.to_owned()]);
        for kept in 8..secret.len() {
            let mut stderr = Tail::default();
            stderr.push(secret.as_bytes());
            stderr.push(&[b'x'; STDERR_BYTES_MAX][kept..]);
            let words = last_words(&stderr, &secrets);
            assert!(!words.contains("bytes") && words.contains("[secret]xxx"), "{kept}: {words:.80}");
        }
    }
}
