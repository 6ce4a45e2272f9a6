//! The Redis of `--redis`. It is notified of changes in the store, so that workers see them sooner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, error::ErrorKind};
use milepost::{Coordination, JobId};
use milepost_cli_support::output;
use milepost_core::actions::job::JobAction;
use milepost_core::port::Operated;
use milepost_executors::exec::REDIS_VARIABLE;
use milepost_redis::{InvalidRedis, PREFIX_DEFAULT, Redis, RedisOptions};
use tokio::sync::OnceCell;

use crate::config;

/// How long a command waits for Redis; it waits at most once.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct RedisArgs {
    /// A Redis shared by workers, which notifies them of changes:
    /// redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS
    // The value may contain a password, which help and error messages must not show.
    #[arg(long = "redis", env = REDIS_VARIABLE, hide_env_values = true, value_name = "URL")]
    url: Option<String>,
    /// The prefix of its keys and channels [default: milepost:]
    #[arg(long = "redis-prefix", env = "MILEPOST_REDIS_PREFIX", value_name = "TEXT")]
    prefix: Option<String>,
}

// The URL may contain a password.
impl std::fmt::Debug for RedisArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisArgs").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisArgs {
    /// Starts to connect. An unusable URL ends the command with a usage error.
    pub(crate) fn teller(&self) -> RedisNotifier {
        let options = RedisOptions {
            prefix: self.prefix.clone().unwrap_or_else(|| PREFIX_DEFAULT.to_owned()),
            ..RedisOptions::default()
        };
        let redis = self.url.as_deref().map(|url| start(url, options));
        RedisNotifier { redis, up: OnceCell::new(), noted: AtomicBool::new(false) }
    }

    /// Does the same for workers and servers; the command line takes precedence over the configuration.
    pub(crate) fn helper(&self, configured: Option<config::Redis>) -> Option<Arc<dyn Coordination>> {
        let (configured, mut options) = match configured.map(config::Redis::config) {
            Some((url, options)) => (Some(url), options),
            None => (None, RedisOptions::default()),
        };
        if let Some(prefix) = &self.prefix {
            options.prefix.clone_from(prefix);
        }
        let redis = self.url.as_deref().or(configured.as_deref()).map(|url| start(url, options));
        redis.map(|redis| Arc::new(redis) as Arc<dyn Coordination>)
    }
}

fn start(url: &str, options: RedisOptions) -> Redis {
    Redis::start(url, options).unwrap_or_else(|why: InvalidRedis| {
        let remedy = "give --redis (or MILEPOST_REDIS) as redis://USER:PASSWORD@HOST:PORT/DB";
        clap::Error::raw(ErrorKind::InvalidValue, format!("{why}; {remedy}\n")).exit()
    })
}

/// Notifies workers of changes in the store. A lost notification only causes a delay.
pub(crate) struct RedisNotifier {
    redis: Option<Redis>,
    up: OnceCell<bool>,
    /// Whether the user was notified that Redis does not work.
    noted: AtomicBool,
}

impl RedisNotifier {
    /// Notifies workers that a job may have become ready.
    pub(crate) async fn ready(&self) {
        if let Some(redis) = self.available().await {
            self.note_failure(redis.announce_ready().await, redis);
        }
    }

    /// Notifies workers of the result of an action.
    pub(crate) async fn operated(&self, action: JobAction, job: JobId, operated: Operated) {
        if let Some(redis) = self.available().await {
            self.note_failure(action.announce(job, operated, redis).await, redis);
        }
    }

    /// Returns the Redis if it is reachable; the first call waits for it.
    async fn available(&self) -> Option<&Redis> {
        let redis = self.redis.as_ref()?;
        let up = self.up.get_or_init(|| async {
            let up = redis.is_up_within(PATIENCE).await;
            self.note_failure(up, redis);
            up
        });
        up.await.then_some(redis)
    }

    /// Tells the user once that Redis did not pass on a change, unless it did.
    fn note_failure(&self, is_published: bool, redis: &Redis) {
        if !is_published && !self.noted.swap(true, Ordering::Relaxed) {
            output::note(format_args!(
                "note: {}; the change was made, and workers learn of it from the database",
                redis.trouble()
            ));
        }
    }
}
