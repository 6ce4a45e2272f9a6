//! How jobs are sent, checked before anything is.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use milepost_core::secrets::Secrets;
use milepost_http::{Forbidden, InvalidNetwork, Networks};
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use thiserror::Error;

use super::TIMEOUT_DEFAULT;

/// Headers that the executor itself or the connection sets, besides all that begin with `milepost-`.
const RESERVED: [&str; 8] = [
    "idempotency-key",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "host",
    "upgrade",
    "te",
];

/// How jobs of a kind are sent.
#[derive(Clone)]
pub struct HttpConfig {
    /// Where they are posted to; `http` or `https`.
    pub url: String,
    /// Headers besides those that tell of the run. Their values are taken for secrets.
    pub headers: BTreeMap<String, String>,
    /// Networks that may be connected to besides the public internet, such as `10.0.0.0/8`.
    pub allow_networks: Vec<String>,
    /// How long one call may take, from the connection to the end of the body.
    pub timeout: Duration,
    /// What else is secret, and must not stand in what is kept of an answer.
    pub secrets: Secrets,
}

impl HttpConfig {
    /// To this URL on the public internet, without further headers.
    #[must_use]
    pub fn to(url: impl Into<String>) -> Self {
        let (headers, allow_networks) = (BTreeMap::new(), Vec::new());
        let secrets = Secrets::default();
        Self { url: url.into(), headers, allow_networks, timeout: TIMEOUT_DEFAULT, secrets }
    }

    /// To servers of these networks too, such as `10.0.0.0/8`.
    #[must_use]
    pub fn allow(mut self, networks: &[&str]) -> Self {
        self.allow_networks.extend(networks.iter().map(|&network| network.to_owned()));
        self
    }
}

// Neither a URL nor the values of headers are shown: both hold secrets.
impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig")
            .field("headers", &self.headers.keys())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Settings of an HTTP executor that cannot be used. Says nothing secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InvalidHttp {
    /// The URL is none.
    #[error("this is no URL ({why})")]
    Url {
        /// The parser's words.
        why: String,
    },
    /// The URL is of another protocol.
    #[error("the URL's scheme is {scheme:?}; it must be http or https")]
    Scheme {
        /// What stands before the colon.
        scheme: String,
    },
    /// A network is none.
    #[error("{0}")]
    Network(#[from] InvalidNetwork),
    /// The URL names an address that is not to be connected to.
    #[error("{0}")]
    Address(#[from] Forbidden),
    /// A header's name has characters that none may have.
    #[error("{name:?} cannot be the name of a header")]
    HeaderName {
        /// The name.
        name: String,
    },
    /// A header that is not the configuration's to set.
    #[error("the header {name:?} is set by Milepost")]
    HeaderReserved {
        /// The name.
        name: String,
    },
    /// A header's value has characters that none may have.
    #[error("the value of the header {name:?} has characters that a header cannot carry")]
    HeaderValue {
        /// The header's name; the value may be secret.
        name: String,
    },
    /// TLS cannot be spoken, for want of the system's root certificates, say.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The client cannot be made.
    #[error("no HTTP client can be made")]
    Client(#[source] reqwest::Error),
}

/// The URL when jobs can be posted to it.
///
/// # Errors
/// [`InvalidHttp`] says why they cannot.
pub fn check_url(url: &str) -> Result<Url, InvalidHttp> {
    let url = Url::parse(url).map_err(|e| InvalidHttp::Url { why: e.to_string() })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(InvalidHttp::Scheme { scheme: scheme.to_owned() }),
    }
}

/// The networks that are connected to for a URL: these, and the public's.
///
/// # Errors
/// [`InvalidHttp`] when a text is no network, or when the URL names an address of none of them.
pub fn check_networks(allowed: &[String], url: &Url) -> Result<Networks, InvalidHttp> {
    let networks = Networks::parse(allowed, true)?;
    networks.check_url(url)?;
    Ok(networks)
}

/// The header when it can be sent; its value is marked as secret.
///
/// # Errors
/// [`InvalidHttp`] says why it cannot.
pub fn check_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), InvalidHttp> {
    let owned = || name.to_owned();
    let parsed: HeaderName = name.parse().map_err(|_| InvalidHttp::HeaderName { name: owned() })?;
    if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("milepost-") {
        return Err(InvalidHttp::HeaderReserved { name: owned() });
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| InvalidHttp::HeaderValue { name: owned() })?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_is_spoken() {
        assert!(check_url("https://mail.internal/send?a=b").is_ok());
        for bad in ["ftp://mail.internal", "mail.internal/send", "https://", ""] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_that_tell_of_the_run_cannot_be_set_and_values_are_never_said() {
        let refused = |name, value| check_header(name, value).unwrap_err().to_string();
        assert!(refused("Idempotency-Key", "x").contains("set by Milepost"));
        assert!(refused("milepost-attempt", "x").contains("set by Milepost"));
        assert!(refused("a b", "x").contains("name of a header"));
        let message = refused("Authorization", "s3cret\n");
        assert!(message.contains("Authorization") && !message.contains("s3cret"));
        assert!(check_header("Authorization", "s3cret").unwrap().1.is_sensitive());
    }

    #[test]
    fn settings_show_no_secret() {
        let headers = BTreeMap::from([("Authorization".to_owned(), "s3cret".to_owned())]);
        let config = HttpConfig { headers, ..HttpConfig::to("https://ada:s3cret@db/s3cret") };
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
