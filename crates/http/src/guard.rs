//! Keeps calls from addresses that are none of their business: a URL is somebody else's word, and what it names may be a database of ours.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::networks::{Forbidden, Networks};

/// Finds the addresses of a name.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Looks names up, and lets none through of which an address may not be connected to.
///
/// The client connects to the addresses that it gets from here, and looks nothing up by itself: no name can become another address between the
/// check and the connection.
///
/// Whoever uses it lets a client neither follow redirects nor use proxies, and checks URLs that name addresses by themselves.
#[derive(Clone)]
pub struct Guard {
    networks: Networks,
    lookup: Arc<Lookup>,
}

/// A name one of whose addresses may not be connected to.
#[derive(Debug, thiserror::Error)]
#[error("its name leads elsewhere: {0}")]
struct Elsewhere(#[source] Forbidden);

/// Why a call was not let through, if that is what an error comes from.
#[must_use]
pub fn forbidden(error: &reqwest::Error) -> Option<String> {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<Elsewhere>() {
            return Some(cause.to_string());
        }
        source = cause.source();
    }
    None
}

impl Guard {
    /// With the system's way to look names up.
    #[must_use]
    pub fn new(networks: Networks) -> Self {
        let lookup = |name: String| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(async move {
                Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
            })
        };
        Self::looking_up(networks, lookup)
    }

    /// With another way, for tests.
    pub fn looking_up(
        networks: Networks,
        lookup: impl Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync + 'static,
    ) -> Self {
        Self { networks, lookup: Arc::new(lookup) }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("networks", &self.networks).finish_non_exhaustive()
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { networks, lookup } = self.clone();
        Box::pin(async move {
            let addresses = lookup(name.as_str().to_owned()).await?;
            for address in &addresses {
                networks.check(*address).map_err(Elsewhere)?;
            }
            // The port is the URL's.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
