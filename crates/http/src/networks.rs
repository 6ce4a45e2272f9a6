//! Networks that may be connected to.

use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;
use thiserror::Error;

use crate::address::is_public;

/// Which addresses may be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks {
    allowed: Vec<IpNet>,
    /// Whether the public's are, too.
    public: bool,
}

/// A text that names no network.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct InvalidNetwork(String);

/// An address that may not be connected to; says which setting allows it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Forbidden(String);

impl Networks {
    /// Those that are allowed by name, and maybe the public's.
    ///
    /// # Errors
    /// [`InvalidNetwork`] says what to write.
    pub fn parse(allowed: &[String], public: bool) -> Result<Self, InvalidNetwork> {
        let network = |text: &String| {
            let network: IpNet = text.parse().map_err(|_| {
                InvalidNetwork(format!(
                    "{text:?} is no network; give it as 10.0.0.0/8, or 10.1.2.3/32 for one address"
                ))
            })?;
            match network.trunc() {
                trunc if trunc == network => Ok(network),
                trunc => Err(InvalidNetwork(format!("{text} is no network; the network is {trunc}"))),
            }
        };
        let allowed = allowed.iter().map(network).collect::<Result<_, _>>()?;
        Ok(Self { allowed, public })
    }

    /// Whether an address may be connected to.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        let address = address.to_canonical();
        match (self.allowed.iter().any(|network| network.contains(&address)), is_public(address)) {
            (true, _) => Ok(()),
            (false, true) if self.public => Ok(()),
            (false, true) => Err(Forbidden(format!(
                "{address} is in no network of `allow_networks`, and only those get http; use https"
            ))),
            (false, false) => Err(Forbidden(format!(
                "{address} is not a public address; if it is yours, name its network in `allow_networks` beside the `url`"
            ))),
        }
    }

    /// Checks a URL that names an address: no name is looked up for it.
    ///
    /// # Errors
    /// [`Forbidden`], also when nobody is asked for it later: a client connects to it without a [`Guard`](crate::Guard).
    pub fn check_url(&self, url: &Url) -> Result<(), Forbidden> {
        // The host as it stands in the URL, where all ways to write an address have become one.
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(address),
            Err(_) => Ok(()),
        }
    }
}
