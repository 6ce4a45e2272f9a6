//! The check of a server's listen address against its access control.

use std::net::SocketAddr;

use thiserror::Error;

/// Protection against other clients on the network.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    /// Whether every request needs a token.
    pub asks_for_tokens: bool,
    /// Whether operation without tokens was allowed explicitly (`--insecure-no-tokens`).
    pub insecure_no_tokens: bool,
    /// Whether the server uses TLS.
    pub tls: bool,
    /// Whether operation without TLS was allowed explicitly (`--insecure-no-tls`).
    pub insecure_no_tls: bool,
}

/// An address that other machines can reach, without tokens or without TLS.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Exposed {
    /// Any client could perform every operation.
    #[error(
        "other machines can reach {0}, and no tokens are required: create one (`milepost tokens create`), always require tokens \
         (--require-tokens), listen on 127.0.0.1, or allow this with --insecure-no-tokens"
    )]
    NoTokens(SocketAddr),
    /// Anyone on the network path could read tokens.
    #[error(
        "other machines can reach {0}, and tokens would cross the network unencrypted: set --tls-cert and --tls-key, listen on \
         127.0.0.1 behind a proxy that terminates TLS, or allow this with --insecure-no-tls"
    )]
    NoTls(SocketAddr),
}

impl Exposure {
    /// Checks whether a server may listen on this address.
    ///
    /// # Errors
    /// Returns the missing protection.
    pub const fn check(self, address: SocketAddr) -> Result<(), Exposed> {
        if address.ip().is_loopback() {
            Ok(())
        } else if !self.asks_for_tokens && !self.insecure_no_tokens {
            Err(Exposed::NoTokens(address))
        } else if !self.tls && !self.insecure_no_tls {
            Err(Exposed::NoTls(address))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_reach_needs_tokens_and_tls_unless_told_so_by_name() {
        let everywhere: SocketAddr = "0.0.0.0:7070".parse().unwrap();
        let here: SocketAddr = "[::1]:7070".parse().unwrap();
        for bits in 0..16_u8 {
            let is = |bit: u8| bits & (1 << bit) != 0;
            let exposure = Exposure {
                asks_for_tokens: is(0),
                insecure_no_tokens: is(1),
                tls: is(2),
                insecure_no_tls: is(3),
            };
            assert_eq!(exposure.check(here), Ok(()));
            let expected = if !is(0) && !is(1) {
                Err(Exposed::NoTokens(everywhere))
            } else if !is(2) && !is(3) {
                Err(Exposed::NoTls(everywhere))
            } else {
                Ok(())
            };
            assert_eq!(exposure.check(everywhere), expected, "{exposure:?}");
        }
    }
}
