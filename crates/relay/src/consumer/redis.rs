//! Source of events: Redis Streams.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::streams::{StreamAutoClaimReply, StreamId, StreamReadReply};
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult, cmd};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::reading;
use super::{Incoming, InvalidSource, REPLY_MAX, Receipt, Source, SourceDown};

/// How long a read waits for entries. Entries to be retried are checked between reads.
const BLOCK: Duration = Duration::from_millis(500);
/// How many entries are read at the same time.
const BATCH: usize = 100;

/// Entries of a stream, read through a consumer group, which is created if it does not exist and starts at the beginning of the stream. Entries that a
/// stopped member had not acknowledged are claimed by the other members.
#[derive(Debug)]
pub struct RedisSource {
    client: Client,
    place: String,
    stream: String,
    group: String,
    member: String,
    claim_idle: Duration,
    line: Option<Session>,
    buffer: VecDeque<StreamId>,
    again: (mpsc::UnboundedSender<StreamId>, mpsc::UnboundedReceiver<StreamId>),
}

#[derive(Debug)]
struct Session {
    /// Connection for blocking reads; no other command can use it.
    reading: MultiplexedConnection,
    telling: MultiplexedConnection,
    claim_at: Instant,
}

impl RedisSource {
    /// Reads a stream of the server at `url` (`redis://USER:PASSWORD@HOST:PORT/DB`) as a member of a group. Members that run at the same time need
    /// different names.
    ///
    /// # Errors
    /// [`InvalidSource`] if the URL is invalid.
    pub fn new(
        url: &str,
        stream: impl Into<String>,
        group: impl Into<String>,
        member: impl Into<String>,
    ) -> Result<Self, InvalidSource> {
        let (client, place) = crate::sink::redis::server(url)?;
        Ok(Self {
            client,
            place,
            stream: stream.into(),
            group: group.into(),
            member: member.into(),
            claim_idle: Duration::from_secs(60),
            line: None,
            buffer: VecDeque::new(),
            again: mpsc::unbounded_channel(),
        })
    }

    /// Sets how long an entry may stay unacknowledged before another member claims it. Must be longer than handlers and backoffs take. The default is
    /// one minute.
    #[must_use]
    pub const fn claim_idle(mut self, claim_idle: Duration) -> Self {
        self.claim_idle = claim_idle;
        self
    }

    async fn connect(&self) -> RedisResult<Session> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(REPLY_MAX))
            .set_response_timeout(Some(REPLY_MAX + BLOCK));
        let mut telling = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let reading = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(&self.stream).arg(&self.group).arg("0").arg("MKSTREAM");
        match make.query_async::<()>(&mut telling).await {
            Err(error) if error.code() != Some("BUSYGROUP") => Err(error),
            _ => Ok(Session { reading, telling, claim_at: Instant::now() }),
        }
    }

    /// Reads entries: first those that have been unacknowledged for `claim_idle`, then new ones.
    async fn read(&mut self) -> RedisResult<()> {
        let line = match self.line.take() {
            Some(line) => line,
            None => self.connect().await?,
        };
        let line = self.line.insert(line);
        if Instant::now() >= line.claim_at {
            let mut claim = cmd("XAUTOCLAIM");
            claim.arg(&self.stream).arg(&self.group).arg(&self.member);
            claim.arg(self.claim_idle.as_millis()).arg("0-0").arg("COUNT").arg(BATCH);
            let claimed: StreamAutoClaimReply = claim.query_async(&mut line.telling).await?;
            line.claim_at = Instant::now() + self.claim_idle / 2;
            self.buffer.extend(claimed.claimed);
            if !self.buffer.is_empty() {
                return Ok(());
            }
        }
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&self.group).arg(&self.member).arg("COUNT").arg(BATCH);
        read.arg("BLOCK").arg(BLOCK.as_millis()).arg("STREAMS").arg(&self.stream).arg(">");
        let new: Option<StreamReadReply> = read.query_async(&mut line.reading).await?;
        self.buffer.extend(new.into_iter().flat_map(|new| new.keys).flat_map(|key| key.ids));
        Ok(())
    }

    fn incoming(&self, entry: StreamId, telling: MultiplexedConnection) -> Incoming {
        let text = |value: &redis::Value| redis::from_redis_value_ref::<String>(value).ok();
        let data = entry.map.get("data").and_then(|value| redis::from_redis_value_ref(value).ok());
        let headers = entry
            .map
            .iter()
            .filter(|(name, _)| *name != "data")
            .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect::<Vec<_>>();
        let event = reading::read(&self.place, "ce_", &[], headers.into_iter(), data.unwrap_or_default());
        let (stream, group) = (self.stream.clone(), self.group.clone());
        let again = self.again.0.clone();
        Incoming { event, receipt: Box::new(Entry { telling, stream, group, entry, again }) }
    }

    fn down(&mut self, error: &RedisError) -> SourceDown {
        self.line = None;
        SourceDown { place: self.place.clone(), why: error.to_string() }
    }
}

#[async_trait]
impl Source for RedisSource {
    async fn next(&mut self) -> Result<Incoming, SourceDown> {
        loop {
            if let Some(line) = &self.line {
                let telling = line.telling.clone();
                let entry = self.again.1.try_recv().ok().or_else(|| self.buffer.pop_front());
                if let Some(entry) = entry {
                    return Ok(self.incoming(entry, telling));
                }
            }
            if let Err(error) = self.read().await {
                return Err(self.down(&error));
            }
        }
    }
}

/// An entry that stays pending until it is acknowledged.
struct Entry {
    telling: MultiplexedConnection,
    stream: String,
    group: String,
    entry: StreamId,
    again: mpsc::UnboundedSender<StreamId>,
}

#[async_trait]
impl Receipt for Entry {
    async fn acknowledge(mut self: Box<Self>) -> Result<(), String> {
        let mut acknowledge = cmd("XACK");
        acknowledge.arg(&self.stream).arg(&self.group).arg(&self.entry.id);
        let acknowledged = acknowledge.query_async::<()>(&mut self.telling).await;
        acknowledged.map_err(|error| error.to_string())
    }

    /// Redis does not redeliver entries. The entry stays pending and is returned from memory after the delay; if this process stops, another member
    /// claims it.
    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        let Self { entry, again, .. } = *self;
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Fails if the source was dropped; then no retry is needed.
            let _ = again.send(entry);
        });
        Ok(())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        self.acknowledge().await
    }
}
