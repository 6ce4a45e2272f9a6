//! Where a server may listen.

use std::net::SocketAddr;

use thiserror::Error;

/// What is done against others on the network.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    /// Whether everybody is asked for a token.
    pub asks_for_tokens: bool,
    /// Whether it was said by name that nobody needs to be.
    pub insecure_no_tokens: bool,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Whether it was said by name that it need not.
    pub insecure_no_tls: bool,
}

/// An address that others reach, and nothing that keeps them out or in the dark.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Exposed {
    /// Anybody could do everything.
    #[error(
        "{0} is not an address of this machine alone, and no token is asked for: make one (`milepost tokens create`), ask for tokens in any case \
         (--require-tokens), listen at 127.0.0.1, or say --insecure-no-tokens"
    )]
    NoTokens(SocketAddr),
    /// Anybody on the way could read tokens.
    #[error(
        "{0} is not an address of this machine alone, and tokens would cross the network in the clear: give --tls-cert and --tls-key, listen at \
         127.0.0.1 behind a proxy that ends TLS, or say --insecure-no-tls"
    )]
    NoTls(SocketAddr),
}

impl Exposure {
    /// Whether a server may listen at this address.
    ///
    /// # Errors
    /// What others could do there.
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
