//! The implementation of the coordination port.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::ident::{JobId, Run, WorkerId};
use milepost_core::port::{Coordination, CoordinationHealth, WakeStream};
use milepost_core::transition::Verb;
use redis::Script;
use tokio::task::AbortHandle;

use crate::keys::Keys;
use crate::link::Link;
use crate::options::{Address, InvalidRedis, RedisOptions};

/// How long a stop flag is kept: far longer than the answer to a claim takes.
const FLAG_TTL: Duration = Duration::from_secs(60);
/// How many locks one script sets, so that it does not block Redis.
const LOCKS_MAX: usize = 500;

static LOCK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lock.lua")));
static UNLOCK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("unlock.lua")));

/// A Redis connection that serves as the helper. It reconnects until it is dropped.
pub struct Redis {
    pub(crate) link: Arc<Link>,
    keeper: AbortHandle,
}

impl Redis {
    /// Begins to connect to the Redis at this URL and returns immediately, whether or not it is available. Call it in a Tokio runtime.
    ///
    /// # Errors
    /// If the URL cannot be used.
    pub fn start(url: &str, options: RedisOptions) -> Result<Self, InvalidRedis> {
        let link = Arc::new(Link::new(Address::parse(url)?, Keys(options.prefix), options.timeout));
        let kept = link.clone();
        let keeper = tokio::spawn(async move { kept.keep().await }).abort_handle();
        Ok(Self { link, keeper })
    }

    /// Waits until Redis answers, at most this long; returns whether it does.
    pub async fn is_up_within(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.link.until_up()).await.is_ok()
    }

    /// Returns the address and the last error, for messages to operators.
    pub fn trouble(&self) -> String {
        let why = self.link.trouble();
        let why = if why.is_empty() { "no answer yet" } else { &why };
        format!("{}: {why}", self.link.place())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

#[async_trait]
impl Coordination for Redis {
    async fn beat(&self, worker: WorkerId, ttl: Duration) {
        let mut set = redis::cmd("SET");
        set.arg(self.link.keys.heartbeat(worker)).arg("alive").arg("PX").arg(ms(ttl));
        self.link.call::<(), _>("beat", async |mut redis| set.query_async(&mut redis).await).await;
    }

    async fn leave(&self, worker: WorkerId) {
        let mut del = redis::cmd("DEL");
        del.arg(self.link.keys.heartbeat(worker));
        self.link.call::<(), _>("leave", async |mut redis| del.query_async(&mut redis).await).await;
    }

    async fn lock(&self, runs: &[Run], ttl: Duration) -> bool {
        let mut flagged = false;
        for runs in runs.chunks(LOCKS_MAX) {
            let mut lock = LOCK.arg(ms(ttl));
            for run in runs {
                lock.key(self.link.keys.lock(run.job)).key(self.link.keys.stop(run.job)).arg(run.token.0);
            }
            let call = async |mut redis| lock.invoke_async::<i64>(&mut redis).await;
            flagged |= self.link.call("lock", call).await.is_some_and(|flags| flags > 0);
        }
        flagged
    }

    async fn unlock(&self, runs: &[Run]) {
        for runs in runs.chunks(LOCKS_MAX) {
            let mut unlock = UNLOCK.prepare_invoke();
            for run in runs {
                unlock.key(self.link.keys.lock(run.job)).arg(run.token.0);
            }
            self.link.call::<(), _>("unlock", async |mut redis| unlock.invoke_async(&mut redis).await).await;
        }
    }

    async fn is_held_by_older(&self, run: Run) -> bool {
        let mut get = redis::cmd("GET");
        get.arg(self.link.keys.lock(run.job));
        let call = async |mut redis| get.query_async::<Option<i32>>(&mut redis).await;
        self.link.call("is_held", call).await.flatten().is_some_and(|token| token < run.token.0)
    }

    async fn flag_stop(&self, job: JobId, verb: Verb) -> bool {
        let keys = &self.link.keys;
        let mut both = redis::pipe();
        both.cmd("SET").arg(keys.stop(job)).arg(verb.as_str()).arg("PX").arg(ms(FLAG_TTL)).ignore();
        both.cmd("PUBLISH").arg(keys.stop_channel()).arg(format!("{verb} {job}")).ignore();
        let call = async |mut redis| both.query_async::<()>(&mut redis).await;
        self.link.call("flag_stop", call).await.is_some()
    }

    async fn announce_ready(&self) -> bool {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.link.keys.ready_channel()).arg("ready");
        let call = async |mut redis| publish.query_async::<()>(&mut redis).await;
        self.link.call("announce_ready", call).await.is_some()
    }

    fn hints(&self) -> Box<dyn WakeStream> {
        Box::new(self.link.hints.listen())
    }

    fn health(&self) -> CoordinationHealth {
        CoordinationHealth { up: self.link.is_up(), failures: self.link.failures() }
    }
}

pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}
