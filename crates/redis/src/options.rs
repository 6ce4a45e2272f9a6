//! Settings and addresses of a Redis.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ConnectionAddr};
use rustls::crypto::ring;
use thiserror::Error;

/// The default prefix of all keys and channels.
pub const PREFIX_DEFAULT: &str = "milepost:";
/// The default time limit of a call.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_millis(200);

/// The settings of a Redis.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// The prefix of all keys and channels. Stores that share a Redis must use different prefixes.
    pub prefix: String,
    /// The time limit of a call. A slower Redis counts as unavailable.
    pub timeout: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { prefix: PREFIX_DEFAULT.to_owned(), timeout: TIMEOUT_DEFAULT }
    }
}

/// The reason why a Redis cannot be used. Never contains the URL, which may include a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the Redis URL cannot be used: {why}")]
pub struct InvalidRedis {
    why: String,
}

/// Checks a URL: `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://…` for TLS, or `unix:///PATH`.
///
/// # Errors
/// [`InvalidRedis`] describes the problem.
pub fn check_url(url: &str) -> Result<(), InvalidRedis> {
    Address::parse(url).map(drop)
}

/// A server, and its display name.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) client: Client,
    pub(crate) place: Arc<str>,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidRedis> {
        let refused = |why: String| InvalidRedis { why };
        let known = ["redis://", "rediss://", "unix://", "redis+unix://"];
        if !known.iter().any(|scheme| url.starts_with(scheme)) {
            let why = "it must begin with redis://, with rediss:// for TLS, or with unix:// for a socket";
            return Err(refused(why.to_owned()));
        }
        let client = Client::open(url).map_err(|error| match error.detail() {
            Some(detail) if !url.contains(detail) => refused(format!("{error}")),
            _ => refused("it is not of the form redis://USER:PASSWORD@HOST:PORT/DB".to_owned()),
        })?;
        let place = match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) => format!("Redis at {host}:{port}"),
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                let why = "remove #insecure: without it, rediss:// checks the server's certificate; let the system \
                           trust the authority that signed it";
                return Err(refused(why.to_owned()));
            }
            ConnectionAddr::TcpTls { host, port, .. } => {
                // Installs the crypto provider that all connections of Milepost use, unless another one is installed.
                let _ = ring::default_provider().install_default();
                format!("Redis at {host}:{port} (TLS)")
            }
            ConnectionAddr::Unix(path) => format!("Redis at {}", path.display()),
            _ => "Redis".to_owned(),
        };
        Ok(Self { client, place: place.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_never_shows_its_password() {
        let place = |url: &str| Address::parse(url).map(|address| address.place.to_string());
        assert_eq!(place("redis://ada:s3cret@cache:6380/3"), Ok("Redis at cache:6380".to_owned()));
        assert_eq!(place("rediss://:s3cret@cache"), Ok("Redis at cache:6379 (TLS)".to_owned()));
        assert_eq!(place("unix:///run/redis.sock"), Ok("Redis at /run/redis.sock".to_owned()));
        for bad in [
            "",
            "cache:6379",
            "http://ada:s3cret@cache",
            "redis://ada:s3cret@cache/s3cret",
            "redis://:s3cret@",
            "rediss://:s3cret@cache/#insecure",
        ] {
            let why = check_url(bad).unwrap_err().to_string();
            assert!(!why.contains("s3cret") && why.contains("redis"), "{bad}: {why}");
        }
    }
}
