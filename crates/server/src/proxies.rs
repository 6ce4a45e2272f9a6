//! Trusted proxies, and the client address that they report.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use thiserror::Error;

/// Maximum number of addresses that are read from a request.
const HOPS_MAX: usize = 32;

/// The header in which proxies report the client. Only one is read: a proxy that writes one of them forwards the other as the
/// client sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The trusted proxies. By default none is trusted, and the headers are ignored.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ForwardedHeader,
}

/// A text that is neither an address nor a network.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct InvalidProxy(String);

impl TrustedProxies {
    /// Parses addresses and networks of proxies.
    ///
    /// # Errors
    /// [`InvalidProxy`] with a description of the expected form.
    pub fn parse<'t>(
        networks: impl IntoIterator<Item = &'t str>,
        header: ForwardedHeader,
    ) -> Result<Self, InvalidProxy> {
        Ok(Self { networks: networks.into_iter().map(network).collect::<Result<_, _>>()?, header })
    }

    /// Returns whether no proxy is trusted.
    pub(crate) const fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    /// Returns whether the proxy at this address is trusted.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Returns the address of the client whose request came from `peer`: the nearest address that does not belong to a trusted
    /// proxy. If a trusted proxy reports something other than an address, the search ends at that proxy.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if !self.trusts(client) {
            return client;
        }
        for hop in self.hops(headers).into_iter().rev().take(HOPS_MAX) {
            let Some(address) = address(&hop) else { break };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    /// Returns the addresses that proxies wrote, the nearest last.
    fn hops(&self, headers: &HeaderMap) -> Vec<String> {
        let name = match self.header {
            ForwardedHeader::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
            ForwardedHeader::Forwarded => HeaderName::from_static("forwarded"),
        };
        // A value that is not text contains no address.
        let values = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
        match self.header {
            ForwardedHeader::XForwardedFor => {
                values.flat_map(|value| value.split(',')).map(|hop| hop.trim().to_owned()).collect()
            }
            ForwardedHeader::Forwarded => {
                values.flat_map(|value| parts(value, ',')).map(|hop| named(&hop)).collect()
            }
        }
    }
}

fn network(text: &str) -> Result<IpNet, InvalidProxy> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    let network: IpNet = text.parse().map_err(|_| {
        InvalidProxy(format!(
            "{text:?} is neither an address nor a network; give it as 10.1.2.3 or 10.0.0.0/8"
        ))
    })?;
    match network.trunc() {
        trunc if trunc == network => Ok(network),
        trunc => Err(InvalidProxy(format!("{text} has host bits set; the network is {trunc}"))),
    }
}

/// Parses an address with or without a port.
fn address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// Returns the client in an element of `Forwarded`; empty if there is none.
fn named(element: &str) -> String {
    let pairs = parts(element, ';');
    let mut named = pairs
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let Some((_, value)) = named.next() else { return String::new() };
    value.trim().trim_matches('"').to_owned()
}

/// Splits a text at separators outside quotes.
fn parts(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut part, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == separator && !quoted => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(header: ForwardedHeader) -> TrustedProxies {
        TrustedProxies::parse(["10.0.0.0/8", "192.0.2.7", "fd00::/8"], header).unwrap()
    }

    fn client(header: ForwardedHeader, peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        proxies(header).client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_what_trusted_proxies_wrote_counts() {
        let client =
            |peer, lines: &[(&'static str, &str)]| client(ForwardedHeader::XForwardedFor, peer, lines);
        let forged = ("x-forwarded-for", "203.0.113.9");
        assert_eq!(client("198.51.100.1", &[forged]), "198.51.100.1", "any client can set it");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[forged]), "203.0.113.9");
        assert_eq!(client("::ffff:10.0.0.1", &[forged]), "203.0.113.9");
        let through =
            [("x-forwarded-for", "127.0.0.1, 203.0.113.9"), ("x-forwarded-for", "10.2.3.4,192.0.2.7")];
        assert_eq!(
            client("10.0.0.1", &through),
            "203.0.113.9",
            "addresses written by the client are ignored"
        );
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "10.0.0.3, 10.0.0.2")]), "10.0.0.3");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "203.0.113.9, nobody, 10.0.0.2")]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "[2001:db8::1]:80")]), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "203.0.113.9:4711")]), "203.0.113.9");
        assert_eq!(
            client("10.0.0.1", &[("forwarded", "for=203.0.113.9")]),
            "10.0.0.1",
            "only the configured header is read"
        );
    }

    #[test]
    fn the_standard_header_is_read_if_proxies_write_that() {
        let client = |value: &str| client(ForwardedHeader::Forwarded, "fd00::1", &[("forwarded", value)]);
        assert_eq!(client("for=203.0.113.9"), "203.0.113.9");
        assert_eq!(client("For=\"[2001:db8::1]:4711\";proto=https"), "2001:db8::1");
        assert_eq!(client("for=203.0.113.9, host=\"a,for=1.1.1.1\";for=10.0.0.2;by=x"), "203.0.113.9");
        assert_eq!(client("for=203.0.113.9, for=_hidden"), "fd00::1");
        assert_eq!(client("for=203.0.113.9, proto=https"), "fd00::1", "the last proxy reported no address");
        assert_eq!(client("for=unknown"), "fd00::1");
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_to_write() {
        let refused =
            |text| TrustedProxies::parse([text], ForwardedHeader::default()).unwrap_err().to_string();
        assert!(refused("proxy.example.org").contains("10.0.0.0/8"));
        assert_eq!(refused("10.0.0.1/8"), "10.0.0.1/8 has host bits set; the network is 10.0.0.0/8");
    }
}
