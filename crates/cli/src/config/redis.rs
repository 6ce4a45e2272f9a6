//! `[redis]`: a Redis server that workers share for hints, locks and heartbeats.

use milepost_cli_support::passwords::passwords;
use milepost_core::text::is_unprintable;
use milepost_redis::RedisOptions;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;

/// A Redis shared by workers, which makes jobs start and stop sooner. Milepost works without it ([REDIS.md](REDIS.md)).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redis {
    /// Its address: `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://…` for TLS, or `unix:///PATH`.
    #[schemars(extend("format" = "milepost-redis"))]
    url: String,
    /// The prefix of all keys and channels. Stores that share a Redis need different prefixes. The default is
    /// `milepost:`.
    #[serde(default)]
    prefix: Option<String>,
    /// The time limit of one call; a slower Redis is treated as unavailable. The default is `200ms`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    timeout: Option<Humane>,
}

impl Redis {
    /// Returns the passwords in its URL.
    pub(super) fn passwords(&self) -> Vec<String> {
        passwords(&self.url)
    }

    /// Returns the URL and the options.
    pub(crate) fn config(self) -> (String, RedisOptions) {
        let mut options = RedisOptions::default();
        options.prefix = self.prefix.unwrap_or(options.prefix);
        options.timeout = self.timeout.map_or(options.timeout, |time| time.0);
        (self.url, options)
    }
}

// The URL contains a secret.
impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive()
    }
}

/// The maximum length of the prefix of all keys, in bytes.
const PREFIX_BYTES_MAX: usize = 100;

pub(super) fn check(redis: Option<&Node>, faults: &mut Faults) {
    let Some(prefix) = redis.and_then(|redis| redis.get("prefix")) else { return };
    let text = prefix.text().unwrap_or_default();
    if text.len() > PREFIX_BYTES_MAX || text.chars().any(|c| is_unprintable(c) || c.is_whitespace()) {
        let what = "the prefix cannot be used for keys".to_owned();
        faults.add(prefix.span.start, what, "give it up to 100 bytes without spaces, such as \"jobs:\"");
    }
}
