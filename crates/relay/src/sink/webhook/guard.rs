//! Keeps webhooks from addresses that are none of their business: a URL is somebody else's word, and what it names may be a database of ours.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use ipnet::IpNet;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;
use crate::sink::config::InvalidSink;

/// Finds the addresses of a name.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Which addresses may be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Networks {
    allowed: Vec<IpNet>,
    /// Whether the public's are, too.
    public: bool,
}

impl Networks {
    /// Those that are allowed by name, and the public's to `https`.
    pub(super) fn parse(allowed: &[String], scheme: &str) -> Result<Self, InvalidSink> {
        let network = |text: &String| {
            let network: IpNet = text.parse().map_err(|_| {
                let why =
                    format!("{text:?} is no network; give it as 10.0.0.0/8, or 10.1.2.3/32 for one address");
                InvalidSink::new("allow_networks", why)
            })?;
            match network.trunc() {
                trunc if trunc == network => Ok(network),
                trunc => Err(InvalidSink::new(
                    "allow_networks",
                    format!("{text} is no network; the network is {trunc}"),
                )),
            }
        };
        let allowed = allowed.iter().map(network).collect::<Result<_, _>>()?;
        Ok(Self { allowed, public: scheme == "https" })
    }

    /// Whether an address may be connected to; why not, else.
    fn check(&self, address: IpAddr) -> Result<(), String> {
        let address = address.to_canonical();
        match (self.allowed.iter().any(|network| network.contains(&address)), is_public(address)) {
            (true, _) => Ok(()),
            (false, true) if self.public => Ok(()),
            (false, true) => Err(format!(
                "{address} is in no network of `allow_networks`, and only those get http; use https"
            )),
            (false, false) => Err(format!(
                "{address} is not a public address; if it is yours, name its network in `allow_networks`"
            )),
        }
    }

    /// Checks a URL that names an address: no name is looked up for it.
    pub(super) fn check_url(&self, url: &Url) -> Result<(), InvalidSink> {
        // The host as it stands in the URL, where all ways to write an address have become one.
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(address).map_err(|why| InvalidSink::new("url", why)),
            Err(_) => Ok(()),
        }
    }
}

/// Looks names up, and lets none through of which an address may not be connected to.
///
/// The client connects to the addresses that it gets from here, and looks nothing up by itself: no name can become another address between the
/// check and the connection.
#[derive(Clone)]
pub(super) struct Guard {
    networks: Networks,
    lookup: Arc<Lookup>,
}

impl Guard {
    /// With the system's way to look names up.
    pub(super) fn new(networks: Networks) -> Self {
        let lookup = |name: String| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(async move {
                Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
            })
        };
        Self::looking_up(networks, lookup)
    }

    /// With another way.
    pub(super) fn looking_up(
        networks: Networks,
        lookup: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self { networks, lookup: Arc::new(lookup) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { networks, lookup } = self.clone();
        Box::pin(async move {
            let addresses = lookup(name.as_str().to_owned()).await?;
            for address in &addresses {
                networks.check(*address).map_err(|why| format!("its name leads elsewhere: {why}"))?;
            }
            // The port is the URL's.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
