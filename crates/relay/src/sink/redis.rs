//! Sink: Redis Streams.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, Pipeline, RedisError, RedisResult,
    ServerErrorKind,
};
use rustls::crypto::ring;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use super::reconnecting::{Connection, Reconnecting};
use super::setting::{self, InvalidSink, SecretUrl};
use super::{Delivery, Sink, SinkDown};
use crate::message::{CONTENT_TYPE, Message};
use crate::template::Template;

/// How many events are sent in one pipeline. While Redis executes a pipeline it serves no other client, and it keeps the answers in memory.
const PIPELINE_MAX: usize = 500;
/// Error code of Redis for "out of memory", for which the client has no error kind.
const OUT_OF_MEMORY: &str = "OOM";

/// Redis Streams (`XADD`). An acknowledgement means that the server has the entry in memory. Whether the entry survives a crash of the
/// server depends on its setting `appendfsync`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// The URL of the server: `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://…` for TLS, or `unix:///PATH`.
    pub url: SecretUrl,
    /// The stream (key) of an event. The default is `milepost:{aggregate_type}`.
    #[serde(default = "stream_default")]
    pub stream: String,
    /// The approximate maximum number of entries in a stream (`MAXLEN ~`): the oldest are deleted, read or not. The default is no limit.
    #[serde(default)]
    pub entries_max: Option<u64>,
    /// The CloudEvents attribute `source` of all events. The default is `milepost`.
    #[serde(default = "setting::source_default")]
    pub source: String,
    /// The time limit of a call. The default is 5000.
    #[serde(default = "setting::timeout_default_ms")]
    pub timeout_ms: u64,
}

fn stream_default() -> String {
    "milepost:{aggregate_type}".to_owned()
}

/// Publishes events to streams.
#[derive(Debug)]
pub(super) struct Redis {
    place: String,
    client: Client,
    stream: Template,
    entries_max: Option<u64>,
    source: String,
    timeout: Duration,
    line: Reconnecting<Session>,
}

struct Session {
    connection: MultiplexedConnection,
    broken: AtomicBool,
}

impl Connection for Session {
    fn is_usable(&self) -> bool {
        !self.broken.load(Ordering::Relaxed)
    }
}

impl Redis {
    pub(super) fn open(config: &RedisConfig) -> Result<Self, InvalidSink> {
        let (client, place) = server(config.url.expose())?;
        if config.entries_max == Some(0) {
            return Err(InvalidSink::new(
                "entries_max",
                "it must be at least 1; omit it to keep all entries",
            ));
        }
        Ok(Self {
            place,
            client,
            stream: setting::template("stream", &config.stream)?,
            entries_max: config.entries_max,
            source: setting::source(&config.source)?,
            timeout: setting::timeout(config.timeout_ms)?,
            line: Reconnecting::none(),
        })
    }

    async fn connect(&self, deadline: Instant) -> Result<Session, SinkDown> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        match tokio::time::timeout_at(deadline, connecting).await {
            Ok(Ok(connection)) => Ok(Session { connection, broken: AtomicBool::new(false) }),
            Ok(Err(error)) => Err(SinkDown::now(&self.place, error.to_string())),
            Err(_) => Err(SinkDown::now(&self.place, format!("no connection within {:?}", self.timeout))),
        }
    }

    fn add(&self, event: &Event) -> Cmd {
        let message = Message::new(event, &self.source);
        let mut add = redis::cmd("XADD");
        add.arg(self.stream.plain(event));
        if let Some(entries) = self.entries_max {
            add.arg("MAXLEN").arg("~").arg(entries);
        }
        add.arg("*");
        for (name, value) in message.attributes() {
            add.arg(format!("ce_{name}")).arg(&*value);
        }
        add.arg("content-type").arg(CONTENT_TYPE);
        for (name, value) in message.own_headers(&["data"]) {
            add.arg(name).arg(value);
        }
        add.arg("data").arg(message.body());
        add
    }

    /// Sends events and returns their answers, or why there are none.
    async fn send(
        &self,
        line: &Session,
        events: &[Event],
        deadline: Instant,
    ) -> Result<Vec<Confirmation>, String> {
        let mut pipeline = Pipeline::with_capacity(events.len());
        for event in events {
            pipeline.add_command(self.add(event));
        }
        pipeline.ignore_errors();
        let mut connection = line.connection.clone();
        let answers = tokio::time::timeout_at(deadline, pipeline.query_async(&mut connection)).await;
        let why = match answers {
            Ok(Ok(answers)) => return Ok(answers),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {:?}", self.timeout),
        };
        line.broken.store(true, Ordering::Relaxed);
        Err(why)
    }
}

/// The id of the new entry, or an error.
type Confirmation = RedisResult<String>;

#[async_trait]
impl Sink for Redis {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let deadline = Instant::now() + self.timeout;
        let line = self.line.get(self.connect(deadline)).await?;
        let mut deliveries = Vec::with_capacity(events.len());
        for events in events.chunks(PIPELINE_MAX) {
            let answers = match self.send(&line, events, deadline).await {
                Ok(answers) => answers,
                Err(why) => {
                    deliveries.extend(vec![Delivery::Unknown { why }; events.len()]);
                    break;
                }
            };
            for answer in answers {
                if let Some(why) = answer.as_ref().err().filter(|error| takes_nothing(error)) {
                    // The address may now lead to another server, and the account may have other permissions.
                    self.line.forget(&line).await;
                    let down = SinkDown::now(&self.place, why.to_string());
                    return if deliveries.is_empty() { Err(down) } else { Ok(deliveries) };
                }
                deliveries.push(delivery(answer));
            }
        }
        Ok(deliveries)
    }
}

fn delivery(answer: Confirmation) -> Delivery {
    match answer {
        Ok(_) => Delivery::Acknowledged,
        Err(error) => Delivery::Refused { why: error.to_string() },
    }
}

/// Returns whether the server accepts no events at present: it is a replica, out of memory, loading, or refuses the account.
fn takes_nothing(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly};
    matches!(
        error.kind(),
        ErrorKind::AuthenticationFailed
            | ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly)
    ) || matches!(error.code(), Some(OUT_OF_MEMORY | "NOAUTH" | "WRONGPASS" | "MISCONF" | "NOREPLICAS"))
}

/// Returns a client for the server, and the server's name for display.
pub(crate) fn server(url: &str) -> Result<(Client, String), InvalidSink> {
    let refused = |why: &str| InvalidSink::new("url", why);
    if !["redis://", "rediss://", "unix://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(refused(
            "it must begin with redis://, with rediss:// for TLS, or with unix:// for a socket",
        ));
    }
    let form = "it is not of the form redis://USER:PASSWORD@HOST:PORT/DB";
    let client = Client::open(url).map_err(|_| refused(form))?;
    let place = match client.get_connection_info().addr() {
        ConnectionAddr::Tcp(host, port) => format!("Redis at {host}:{port}"),
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            return Err(refused("remove #insecure: without it, rediss:// checks the server's certificate"));
        }
        ConnectionAddr::TcpTls { host, port, .. } => {
            // Installs the cryptography provider that all connections of Milepost use. Has no effect if the process has already installed another.
            let _ = ring::default_provider().install_default();
            format!("Redis at {host}:{port} (TLS)")
        }
        ConnectionAddr::Unix(path) => format!("Redis at {}", path.display()),
        _ => "Redis".to_owned(),
    };
    Ok((client, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_never_shows_its_password() {
        let place = |url: &str| server(url).map(|(_, place)| place);
        assert_eq!(place("redis://ada:s3cret@cache:6380/3"), Ok("Redis at cache:6380".to_owned()));
        assert_eq!(place("rediss://:s3cret@cache"), Ok("Redis at cache:6379 (TLS)".to_owned()));
        for bad in
            ["", "http://ada:s3cret@cache", "redis://ada:s3cret@cache/s3cret", "rediss://:s3cret@c/#insecure"]
        {
            let why = place(bad).unwrap_err().to_string();
            assert!(!why.contains("s3cret") && why.contains("redis"), "{bad}: {why}");
        }
    }
}
