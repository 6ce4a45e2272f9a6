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
    /// Whether proxies in front of the server pass on requests of other machines (`trusted_proxies`).
    pub proxied: bool,
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
    /// Any client of the proxies could perform every operation.
    #[error(
        "other machines can reach {0} through the proxies in trusted_proxies, and no tokens are required: create one \
         (`milepost tokens create`), always require tokens (--require-tokens), or allow this with --insecure-no-tokens"
    )]
    NoTokensBehindProxy(SocketAddr),
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
        let is_loopback = address.ip().is_loopback();
        if self.is_reached(address) && !self.asks_for_tokens && !self.insecure_no_tokens {
            Err(if is_loopback { Exposed::NoTokensBehindProxy(address) } else { Exposed::NoTokens(address) })
        } else if !is_loopback && !self.tls && !self.insecure_no_tls {
            Err(Exposed::NoTls(address))
        } else {
            Ok(())
        }
    }

    /// Returns whether other machines can reach the server at this address, directly or through a proxy.
    #[must_use]
    pub const fn is_reached(self, address: SocketAddr) -> bool {
        self.proxied || !address.ip().is_loopback()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_reach_needs_tokens_and_tls_unless_told_so_by_name() {
        let everywhere: SocketAddr = "0.0.0.0:7070".parse().unwrap();
        let here: SocketAddr = "[::1]:7070".parse().unwrap();
        for bits in 0..32_u8 {
            let is = |bit: u8| bits & (1 << bit) != 0;
            let exposure = Exposure {
                asks_for_tokens: is(0),
                insecure_no_tokens: is(1),
                tls: is(2),
                insecure_no_tls: is(3),
                proxied: is(4),
            };
            let is_open = !is(0) && !is(1);
            let of_proxies = if is(4) && is_open { Err(Exposed::NoTokensBehindProxy(here)) } else { Ok(()) };
            assert_eq!(exposure.check(here), of_proxies, "{exposure:?}");
            let expected = if is_open {
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
