//! Single HTTP requests, each on a new connection.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends a request and returns the complete response, including the status line.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    ask_with(address, method, path, body, "Accept: */*")
}

/// Does the same with an additional header.
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
