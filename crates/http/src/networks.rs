//! Networks that calls can reach.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;
use thiserror::Error;

use crate::address::is_public;

/// The addresses that calls can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks {
    allowed: Vec<IpNet>,
    /// Whether public addresses are also allowed.
    public: bool,
}

/// A text that is not a network.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct InvalidNetwork(String);

/// An address that is not allowed; the message contains the setting that allows it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Forbidden(String);

impl Networks {
    /// Parses the networks that are allowed by name. `public`: whether public addresses are also allowed.
    ///
    /// # Errors
    /// [`InvalidNetwork`] describes the correct form.
    pub fn parse(allowed: &[String], public: bool) -> Result<Self, InvalidNetwork> {
        let network = |text: &String| {
            let network: IpNet = text.parse().map_err(|_| {
                InvalidNetwork(format!(
                    "{text:?} is not a network; write it as 10.0.0.0/8, or as 10.1.2.3/32 for one address"
                ))
            })?;
            match network.trunc() {
                trunc if trunc == network => Ok(network),
                trunc => Err(InvalidNetwork(format!("{text} is not a network; the network is {trunc}"))),
            }
        };
        let allowed = allowed.iter().map(network).collect::<Result<_, _>>()?;
        Ok(Self { allowed, public })
    }

    /// Checks whether an address is allowed.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        let address = address.to_canonical();
        match (self.allowed.iter().any(|network| network.contains(&address)), is_public(address)) {
            (true, _) => Ok(()),
            (false, true) if self.public => Ok(()),
            (false, true) => Err(Forbidden(format!(
                "{address} is not in a network of `allow_networks`; http is allowed only there; use https"
            ))),
            (false, false) => Err(Forbidden(format!(
                "{address} is not a public address; to allow it, add its network to `allow_networks` beside the `url`"
            ))),
        }
    }

    /// Resolves a host, for connections that are not made over HTTP. The caller must connect only to the returned addresses.
    ///
    /// # Errors
    /// The host cannot be resolved, or one of its addresses is not allowed.
    pub async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect(),
        };
        for address in &addresses {
            self.check(*address)
                .map_err(|forbidden| io::Error::new(io::ErrorKind::PermissionDenied, forbidden))?;
        }
        Ok(addresses)
    }

    /// Checks a URL that contains an address, for which no name is resolved.
    ///
    /// # Errors
    /// [`Forbidden`] if the address is not allowed. Without this check a client would connect to it, because the [`Guard`](crate::Guard) is
    /// not used.
    pub fn check_url(&self, url: &Url) -> Result<(), Forbidden> {
        // The host in the parsed URL, where every notation of an address has been normalized.
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(address),
            Err(_) => Ok(()),
        }
    }
}
