//! How a Redis is found and used.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, ConnectionAddr};
use rustls::crypto::ring;
use thiserror::Error;

/// What all keys and channels begin with, unless something else is said.
pub const PREFIX_DEFAULT: &str = "milepost:";
/// How long a call may take, unless something else is said.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_millis(200);

/// How to use a Redis.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// What all keys and channels begin with. Stores that share a Redis must differ in it.
    pub prefix: String,
    /// How long one call may take. A Redis that is slower counts as gone.
    pub timeout: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { prefix: PREFIX_DEFAULT.to_owned(), timeout: TIMEOUT_DEFAULT }
    }
}

/// Why a Redis cannot be used. Never repeats the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the URL of the Redis cannot be used: {why}")]
pub struct InvalidRedis {
    why: String,
}

/// Checks a URL: `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://…` for TLS, or `unix:///PATH`.
///
/// # Errors
/// [`InvalidRedis`] says what is wrong with it.
pub fn check_url(url: &str) -> Result<(), InvalidRedis> {
    Address::parse(url).map(drop)
}

/// A server, and its name for people.
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
                let why = "with #insecure it could be anybody's; without it rediss:// checks the certificate, so \
                           let the system trust the authority that signed it";
                return Err(refused(why.to_owned()));
            }
            ConnectionAddr::TcpTls { host, port, .. } => {
                // The cryptography that all connections of Milepost use. It is another's choice if there is one.
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
