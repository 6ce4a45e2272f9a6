//! Settings of HTTP calls and their validation.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use milepost_core::secrets::Secrets;
use milepost_http::{Forbidden, InvalidNetwork, Networks};
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use thiserror::Error;

use super::TIMEOUT_DEFAULT;

/// Headers that the executor or the connection sets, besides every header that begins with `milepost-`.
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

/// How jobs of a kind run as HTTP calls.
#[derive(Clone)]
pub struct HttpConfig {
    /// The URL to which they are posted; `http` or `https`.
    pub url: String,
    /// Headers in addition to those with the run's metadata. Their values are treated as secrets.
    pub headers: BTreeMap<String, String>,
    /// Networks that calls can reach in addition to the public internet, such as `10.0.0.0/8`.
    pub allow_networks: Vec<String>,
    /// The time limit of a call, from the connection to the end of the body.
    pub timeout: Duration,
    /// Further secrets, which are removed from the stored part of a response.
    pub secrets: Secrets,
}

impl HttpConfig {
    /// Creates settings for this URL on the public internet, without further headers.
    #[must_use]
    pub fn to(url: impl Into<String>) -> Self {
        let (headers, allow_networks) = (BTreeMap::new(), Vec::new());
        let secrets = Secrets::default();
        Self { url: url.into(), headers, allow_networks, timeout: TIMEOUT_DEFAULT, secrets }
    }

    /// Also allows servers in these networks, such as `10.0.0.0/8`.
    #[must_use]
    pub fn allow(mut self, networks: &[&str]) -> Self {
        self.allow_networks.extend(networks.iter().map(|&network| network.to_owned()));
        self
    }
}

// URLs and header values are not shown, because both can contain secrets.
impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig")
            .field("headers", &self.headers.keys())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Invalid settings of an HTTP executor. Contains no secrets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InvalidHttp {
    /// The URL cannot be parsed.
    #[error("not a valid URL ({why})")]
    Url {
        /// The parser's message.
        why: String,
    },
    /// The URL has another scheme than http or https.
    #[error("the URL's scheme is {scheme:?}; it must be http or https")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A network cannot be parsed.
    #[error("{0}")]
    Network(#[from] InvalidNetwork),
    /// The URL contains an address that is not allowed.
    #[error("{0}")]
    Address(#[from] Forbidden),
    /// A header's name contains invalid characters.
    #[error("{name:?} is not a valid header name")]
    HeaderName {
        /// The name.
        name: String,
    },
    /// A header that Milepost sets and the configuration cannot.
    #[error("the header {name:?} is set by Milepost")]
    HeaderReserved {
        /// The name.
        name: String,
    },
    /// A header's value contains invalid characters.
    #[error("the value of the header {name:?} contains characters that are not allowed in headers")]
    HeaderValue {
        /// The header's name; the value may be secret.
        name: String,
    },
    /// TLS cannot be set up, for example because the system's root certificates are missing.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The client cannot be created.
    #[error("the HTTP client cannot be created")]
    Client(#[source] reqwest::Error),
}

/// Parses a URL to which jobs can be posted.
///
/// # Errors
/// [`InvalidHttp`] describes why it cannot be used.
pub fn check_url(url: &str) -> Result<Url, InvalidHttp> {
    let url = Url::parse(url).map_err(|e| InvalidHttp::Url { why: e.to_string() })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(InvalidHttp::Scheme { scheme: scheme.to_owned() }),
    }
}

/// Returns the networks that calls to a URL can reach: these, and the public internet.
///
/// # Errors
/// [`InvalidHttp`] if a text is not a network, or if the URL contains an address in none of them.
pub fn check_networks(allowed: &[String], url: &Url) -> Result<Networks, InvalidHttp> {
    let networks = Networks::parse(allowed, true)?;
    networks.check_url(url)?;
    Ok(networks)
}

/// Parses a header that can be sent. Its value is marked as sensitive.
///
/// # Errors
/// [`InvalidHttp`] describes why it cannot be sent.
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
        assert!(refused("a b", "x").contains("valid header name"));
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
