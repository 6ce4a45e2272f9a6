//! A cache of accepted events, in addition to consumers' inboxes.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::ident::EventId;
use milepost_core::port::{InboxCache, Remembered};

use crate::redis::{Redis, ms};

/// How long it is cached that an event is being processed. Other processes of the consumer wait at most this long for one that died.
const PROCESSING_TTL: Duration = Duration::from_secs(10);
/// How long it is cached that an event was processed; the inbox keeps it for longer.
const DONE_TTL: Duration = Duration::from_secs(24 * 3600);

const PROCESSING: &str = "processing";
const DONE: &str = "done";

#[async_trait]
impl InboxCache for Redis {
    async fn recall(&self, consumer: &str, event: EventId) -> Remembered {
        let key = self.link.keys.inbox(consumer, event);
        let mut both = redis::pipe();
        both.cmd("SET").arg(&key).arg(PROCESSING).arg("NX").arg("PX").arg(ms(PROCESSING_TTL));
        both.cmd("GET").arg(&key);
        let call = async |mut redis| both.query_async::<(Option<String>, Option<String>)>(&mut redis).await;
        match self.link.call("recall", call).await {
            // The key was set by this call.
            None | Some((Some(_), _)) => Remembered::Nothing,
            Some((None, stands)) => match stands.as_deref() {
                Some(DONE) => Remembered::Done,
                Some(PROCESSING) => Remembered::Processing,
                _ => Remembered::Nothing,
            },
        }
    }

    async fn remember(&self, consumer: &str, event: EventId) {
        let mut set = redis::cmd("SET");
        set.arg(self.link.keys.inbox(consumer, event)).arg(DONE).arg("PX").arg(ms(DONE_TTL));
        self.link.call::<(), _>("remember", async |mut redis| set.query_async(&mut redis).await).await;
    }

    async fn forget(&self, consumer: &str, event: EventId) {
        let mut del = redis::cmd("DEL");
        del.arg(self.link.keys.inbox(consumer, event));
        self.link.call::<(), _>("forget", async |mut redis| del.query_async(&mut redis).await).await;
    }
}
