//! Tests of the stream of a server that is killed.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::process::Process;
use crate::support::{Place, on_each_store};
use serde_json::Value;

on_each_store! {
    a_watcher_whose_server_is_killed_again_and_again_hears_everything_once,
}

const KILLS: usize = 4;
/// The number of changes received from each server before it is killed.
const HEARD_MIN: usize = 10;
/// A generous timeout for something that is expected soon.
const SOON: Duration = Duration::from_secs(60);

/// A client that reads one stream after another; each continues after the last complete event of the previous one.
#[derive(Default)]
struct Watcher {
    last_id: String,
    jobs: Vec<String>,
    stream: Option<BufReader<TcpStream>>,
}

impl Watcher {
    fn open(&mut self, address: &str) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        // HTTP/1.0 avoids chunked encoding, so the response contains only the lines of the stream.
        write!(stream, "GET /v1/stream HTTP/1.0\r\nHost: {address}\r\n").unwrap();
        if !self.last_id.is_empty() {
            write!(stream, "Last-Event-ID: {}\r\n", self.last_id).unwrap();
        }
        write!(stream, "\r\n").unwrap();
        self.stream = Some(BufReader::new(stream));
        let head = self.block().unwrap();
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        // The first event contains the current position.
        assert!(self.next());
    }

    /// Reads lines up to an empty one; returns `None` if the connection ends before that.
    fn block(&mut self) -> Option<String> {
        let mut block = String::new();
        loop {
            let mut line = String::new();
            match self.stream.as_mut().unwrap().read_line(&mut line) {
                Ok(bytes) if bytes > 0 && line.ends_with('\n') => {}
                Ok(_) => return None,
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
                    return None;
                }
            }
            if line.trim_end().is_empty() {
                return Some(block);
            }
            block.push_str(&line);
        }
    }

    /// Reads the next event; returns false if the stream has ended.
    fn next(&mut self) -> bool {
        let Some(block) = self.block() else { return false };
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        if let Some(data) = field("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            self.jobs.push(data["job"].as_str().unwrap().to_owned());
        }
        if let Some(id) = field("id: ") {
            id.clone_into(&mut self.last_id);
        }
        true
    }

    fn hear(&mut self, jobs: usize) {
        while self.jobs.len() < jobs {
            assert!(self.next(), "the stream ended after {} of {jobs}", self.jobs.len());
        }
    }
}

/// Sets a flag when it is dropped, also if a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn a_watcher_whose_server_is_killed_again_and_again_hears_everything_once(place: Place) {
    let mut watcher = Watcher::default();
    let (mut server, address) = Process::serve(&place, &[]);
    watcher.open(&address);
    let over = AtomicBool::new(false);
    let (made, _server) = thread::scope(|scope| {
        let over = Over(&over);
        let enqueuing = scope.spawn(|| {
            let mut made = Vec::new();
            while !over.0.load(Ordering::Relaxed) {
                made.push(place.enqueue(&[]));
            }
            made
        });
        for _ in 0..KILLS {
            watcher.hear(watcher.jobs.len() + HEARD_MIN);
            server.signal("KILL");
            server.end();
            while watcher.next() {}
            let address;
            (server, address) = Process::serve(&place, &[]);
            watcher.open(&address);
        }
        over.0.store(true, Ordering::Relaxed);
        (enqueuing.join().unwrap(), server)
    });
    watcher.hear(made.len());
    assert_eq!(watcher.jobs, made);
}
