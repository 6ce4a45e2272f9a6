//! Ports for servers that stop and start again during a test.

use std::net::TcpListener;

/// Below the ephemeral port ranges (Linux: 32768 and up; IANA and macOS: 49152 and up), so that no connection of another test occupies the port while
/// its server is down.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Returns a local port that is not in use.
pub fn free() -> u16 {
    let mut tried = std::iter::repeat_with(|| fastrand::u16(PORTS)).take(100);
    tried.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).expect("no free port")
}
