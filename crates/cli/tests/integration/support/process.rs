//! A process of the command that goes on, and what it logs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use super::Place;

/// Killed with the test.
pub(crate) struct Process {
    pub(crate) child: Child,
    log: BufReader<ChildStderr>,
    pub(crate) heard: String,
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log, heard: String::new() }
    }

    /// A server at this place, and where it listens.
    pub(crate) fn serve(place: &Place, flags: &[&str]) -> (Self, String) {
        let line = [&["serve", "--listen", "127.0.0.1:0"], flags].concat();
        let mut server = Self::spawn(&mut place.command(&line));
        let address = server.address();
        (server, address)
    }

    /// Where a server listens, once it does.
    pub(crate) fn address(&mut self) -> String {
        let line = self.hear("serving http://");
        line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
    }

    /// Reads the log until it says this; answers the line.
    pub(crate) fn hear(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let bytes = self.log.read_line(&mut line).unwrap();
            assert!(bytes > 0, "it ended before it said {words:?}:\n{}", self.heard);
            self.heard.push_str(&line);
        }
        line
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Asks it to leave, which it does well; answers its whole log.
    pub(crate) fn leave(self) -> String {
        self.signal("TERM");
        let (status, log) = self.end();
        assert_eq!(status, Some(0), "{log}");
        log
    }

    /// Waits until it has ended; answers its exit status and its whole log.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        self.log.read_to_string(&mut self.heard).unwrap();
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.heard))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
