//! Proxies before the server: whose word on a client's address is taken.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use thiserror::Error;

/// How many addresses of a request are looked at.
const HOPS_MAX: usize = 32;

/// In which header proxies name the client. Only one is read: a proxy that writes one passes the other on as the client sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The proxies that are trusted. By default there are none, and such headers are ignored.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ForwardedHeader,
}

/// A text that names neither an address nor a network.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct InvalidProxy(String);

impl TrustedProxies {
    /// Those with these addresses, or in these networks.
    ///
    /// # Errors
    /// [`InvalidProxy`] says what to write.
    pub fn parse<'t>(
        networks: impl IntoIterator<Item = &'t str>,
        header: ForwardedHeader,
    ) -> Result<Self, InvalidProxy> {
        Ok(Self { networks: networks.into_iter().map(network).collect::<Result<_, _>>()?, header })
    }

    /// Whether the proxy at this address is trusted.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// The address of the client whose request came from `peer`: going back from there, the first one that is no trusted proxy's. What a
    /// trusted proxy says that is no address ends the search at that proxy.
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

    /// What proxies wrote, the nearest one last.
    fn hops(&self, headers: &HeaderMap) -> Vec<String> {
        let name = match self.header {
            ForwardedHeader::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
            ForwardedHeader::Forwarded => HeaderName::from_static("forwarded"),
        };
        // A value that is no text names no address.
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
        trunc => Err(InvalidProxy(format!("{text} is no network; the network is {trunc}"))),
    }
}

/// An address with or without a port.
fn address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// What an element of `Forwarded` names as the client; empty if it names none.
fn named(element: &str) -> String {
    let pairs = parts(element, ';');
    let mut named = pairs
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let Some((_, value)) = named.next() else { return String::new() };
    value.trim().trim_matches('"').to_owned()
}

/// The parts of a text between separators that are not quoted.
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
        assert_eq!(client("198.51.100.1", &[forged]), "198.51.100.1", "anybody can write it");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[forged]), "203.0.113.9");
        assert_eq!(client("::ffff:10.0.0.1", &[forged]), "203.0.113.9");
        let through =
            [("x-forwarded-for", "127.0.0.1, 203.0.113.9"), ("x-forwarded-for", "10.2.3.4,192.0.2.7")];
        assert_eq!(
            client("10.0.0.1", &through),
            "203.0.113.9",
            "what the client itself wrote does not count"
        );
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "10.0.0.3, 10.0.0.2")]), "10.0.0.3");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "203.0.113.9, nobody, 10.0.0.2")]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "[2001:db8::1]:80")]), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", "203.0.113.9:4711")]), "203.0.113.9");
        assert_eq!(
            client("10.0.0.1", &[("forwarded", "for=203.0.113.9")]),
            "10.0.0.1",
            "that is another header"
        );
    }

    #[test]
    fn the_standard_header_is_read_if_proxies_write_that() {
        let client = |value: &str| client(ForwardedHeader::Forwarded, "fd00::1", &[("forwarded", value)]);
        assert_eq!(client("for=203.0.113.9"), "203.0.113.9");
        assert_eq!(client("For=\"[2001:db8::1]:4711\";proto=https"), "2001:db8::1");
        assert_eq!(client("for=203.0.113.9, host=\"a,for=1.1.1.1\";for=10.0.0.2;by=x"), "203.0.113.9");
        assert_eq!(client("for=203.0.113.9, for=_hidden"), "fd00::1");
        assert_eq!(client("for=203.0.113.9, proto=https"), "fd00::1", "the last proxy did not say");
        assert_eq!(client("for=unknown"), "fd00::1");
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_to_write() {
        let refused =
            |text| TrustedProxies::parse([text], ForwardedHeader::default()).unwrap_err().to_string();
        assert!(refused("proxy.example.org").contains("10.0.0.0/8"));
        assert_eq!(refused("10.0.0.1/8"), "10.0.0.1/8 is no network; the network is 10.0.0.0/8");
    }
}
