//! Prevents calls to internal addresses: a URL comes from someone else, and its name may resolve to an internal database.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::networks::{Forbidden, Networks};

/// Resolves a name to its addresses.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// A DNS resolver that rejects names with an address that is not allowed.
///
/// The client connects to the addresses that this resolver returns and resolves nothing else, so a name cannot change its address between
/// the check and the connection.
///
/// Its users must disable redirects and proxies in the client, and check URLs that contain addresses separately.
#[derive(Clone)]
pub struct Guard {
    networks: Networks,
    lookup: Arc<Lookup>,
}

/// A name with an address that is not allowed.
#[derive(Debug, thiserror::Error)]
#[error("its name resolves to a forbidden address: {0}")]
struct Elsewhere(#[source] Forbidden);

/// Returns why a call was rejected, if a [`Guard`] caused the error.
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
    /// Creates a guard with the system's resolver.
    #[must_use]
    pub fn new(networks: Networks) -> Self {
        let lookup = |name: String| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            Box::pin(async move {
                Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
            })
        };
        Self::looking_up(networks, lookup)
    }

    /// Creates a guard with another resolver, for tests.
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
            // The client uses the port of the URL.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
