//! The client of a request.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use crate::access::Identity;

/// The address of the peer, or the client address reported by [trusted proxies](crate::proxies). IPv6 addresses are reduced to
/// their /64 network, because one client can use any number of addresses in it. Other headers are ignored: any client can set
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(IpAddr);

impl Client {
    pub(crate) fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(ip) if !ip.is_loopback() => {
                let [a, b, c, d, ..] = ip.segments();
                Self(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            ip => Self(ip),
        }
    }

    /// Returns the client of a request. Requests without a known address all count as one client.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self(Ipv4Addr::UNSPECIFIED.into()))
    }

    /// Returns whether the client is on this machine.
    pub(crate) fn is_here(self) -> bool {
        self.0.is_loopback()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// The caller to whom a request is attributed, for limits and audit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A caller with a token or a session.
    Known(Arc<str>),
    /// All callers without a token at one address.
    Address(Client),
}

impl Caller {
    /// Returns the caller of a request that has passed the gate.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let known = extensions.get::<Identity>().filter(|identity| identity.is_known());
        known.map_or_else(
            || Self::Address(Client::of(extensions)),
            |identity| Self::Known(identity.who.clone()),
        )
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_version_6_is_one_client() {
        let at = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(at("2001:db8:1:2:3::4"), at("2001:db8:1:2:ffff::1"));
        assert_ne!(at("2001:db8:1:2::4"), at("2001:db8:1:3::4"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert!(at("::1").is_here() && at("127.0.0.1").is_here() && !at("::2").is_here());
    }
}
