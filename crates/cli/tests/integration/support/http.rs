//! One request to a server, on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The answer to one request, status line and all.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    ask_with(address, method, path, body, "Accept: */*")
}

/// The same, with one more header.
pub(crate) fn ask_with(address: &str, method: &str, path: &str, body: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let bytes = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{header}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
