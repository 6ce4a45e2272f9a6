//! A long-running process of the command, and its log.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::Place;

/// The maximum time without output of a process, and the maximum run time of a program, before a test fails.
const LIMIT: Duration = Duration::from_secs(600);

/// A process, which is killed with the test.
pub(crate) struct Process {
    pub(crate) child: Child,
    /// The lines of its log. They are always read, so that the process never blocks on a full pipe.
    log: Receiver<String>,
    pub(crate) heard: String,
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        Self { child, log: lines(stderr), heard: String::new() }
    }

    /// Starts a process whose output is read instead of its log.
    pub(crate) fn spawn_printing(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self { child, log: lines(stdout), heard: String::new() }
    }

    /// Starts a server at this place, and returns its address.
    pub(crate) fn serve(place: &Place, flags: &[&str]) -> (Self, String) {
        let line = [&["serve", "--listen", "127.0.0.1:0"], flags].concat();
        let mut server = Self::spawn(&mut place.command(&line));
        let address = server.address();
        (server, address)
    }

    /// Returns the address of a server once it listens.
    pub(crate) fn address(&mut self) -> String {
        let line = self.hear("serving http://");
        line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
    }

    /// Reads the log until a line contains this text; returns that line.
    pub(crate) fn hear(&mut self, words: &str) -> String {
        loop {
            let line = self.next_line();
            let line =
                line.unwrap_or_else(|| panic!("it ended before it printed {words:?}:\n{}", self.heard));
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Returns the next line of the log, or `None` at its end.
    fn next_line(&mut self) -> Option<String> {
        match self.log.recv_timeout(LIMIT) {
            Ok(line) => {
                self.heard.push_str(&line);
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("it printed nothing more for {LIMIT:?}:\n{}", self.heard)
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Asks the process to stop and asserts that it exits successfully; returns its complete log.
    pub(crate) fn leave(self) -> String {
        self.signal("TERM");
        let (status, log) = self.end();
        assert_eq!(status, Some(0), "{log}");
        log
    }

    /// Waits until the process has ended; returns its exit status and its complete log.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.next_line().is_some() {}
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.heard))
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let mut stream = BufReader::new(stream);
    let (says, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        while stream.read_line(&mut line).unwrap() > 0 {
            let _ = says.send(std::mem::take(&mut line));
        }
    });
    lines
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program and returns its output. After `LIMIT`, it and its children are killed and the test fails.
pub(crate) fn output(command: &mut Command) -> Output {
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let group = format!("-{}", child.id());
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    if let Ok(output) = end.recv_timeout(LIMIT) {
        return output.unwrap();
    }
    let killed = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
    assert!(killed.unwrap().success());
    let Output { stdout, stderr, .. } = end.recv().unwrap().unwrap();
    let printed = [stdout, stderr].concat();
    panic!("{command:?} did not end within {LIMIT:?}; it printed:\n{}", String::from_utf8_lossy(&printed))
}
