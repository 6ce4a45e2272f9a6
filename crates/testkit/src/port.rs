//! Ports for servers that go away and come back.

use std::net::TcpListener;

/// Below what systems hand out by themselves (Linux: 32768 and up; IANA and macOS: 49152 and up), so that no connection
/// of another test takes the port while its server is down.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A port of this machine that nobody listens on.
pub fn free() -> u16 {
    let mut tried = std::iter::repeat_with(|| fastrand::u16(PORTS)).take(100);
    tried.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).expect("a free port")
}
