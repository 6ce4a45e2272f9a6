//! Connection to NATS.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, ContextBuilder, ErrorCode, stream};
use async_nats::{ConnectErrorKind, ConnectOptions, Event as Happening, ServerAddr};
use milepost_http::in_full;
use percent_encoding::percent_decode_str;
use rustls::crypto::ring;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::sink::reconnecting::Connection;
use crate::sink::setting::InvalidSink;
use crate::sink::{Delivery, SinkDown};

/// Name of the connection, as the server lists it.
const CLIENT: &str = "milepost-relay";

/// A server or the servers of a cluster, and the account.
pub(crate) struct Address {
    /// Name of the servers, for display.
    pub(crate) name: String,
    servers: Vec<ServerAddr>,
    account: Option<Account>,
}

enum Account {
    Token(String),
    User(String, String),
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Address {
    /// Parses URLs separated by commas. Secrets are stored separately, so that no driver can print them.
    pub(crate) fn parse(urls: &str) -> Result<Self, InvalidSink> {
        let refused = |why: &str| InvalidSink::new("url", why);
        let form = "it is not of the form nats://USER:PASSWORD@HOST:PORT";
        let (mut servers, mut account, mut names) = (Vec::new(), None, Vec::new());
        for url in urls.split(',').map(str::trim) {
            if !url.starts_with("nats://") && !url.starts_with("tls://") {
                return Err(refused("it must begin with nats://, or with tls:// for TLS"));
            }
            let mut url = url.parse::<ServerAddr>().map_err(|_| refused(form))?.into_inner();
            let (Some(host), port) = (url.host_str(), url.port().unwrap_or(4222)) else {
                return Err(refused(form));
            };
            let tls = if url.scheme() == "tls" { " (TLS)" } else { "" };
            names.push(format!("{host}:{port}{tls}"));
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            match (url.username(), url.password()) {
                ("", None) => {}
                (token, None) => account = Some(Account::Token(decoded(token))),
                (user, Some(password)) => account = Some(Account::User(decoded(user), decoded(password))),
            }
            let bare = url.set_username("").and_then(|()| url.set_password(None));
            bare.map_err(|()| refused(form))?;
            servers.push(ServerAddr::from_url(url).map_err(|_| refused(form))?);
        }
        Ok(Self { name: format!("NATS at {}", names.join(", ")), servers, account })
    }

    pub(crate) fn servers(&self) -> &[ServerAddr] {
        &self.servers
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        let options = ConnectOptions::new().name(CLIENT);
        match &self.account {
            None => options,
            Some(Account::Token(token)) => options.token(token.clone()),
            Some(Account::User(user, password)) => options.user_and_password(user.clone(), password.clone()),
        }
    }
}

/// A connection that is used until it breaks. It is then replaced, so that no abandoned message waits in it.
pub(super) struct Session {
    place: String,
    jetstream: Context,
    broken: watch::Receiver<bool>,
    /// Set when an answer did not arrive.
    suspect: AtomicBool,
}

/// The result of a message.
pub(super) enum PublishResult {
    Known(Delivery),
    /// No stream accepts this subject.
    NoStream {
        subject: String,
    },
}

impl Session {
    /// Opens a connection.
    pub(super) async fn connect(place: &Address, timeout: Duration) -> Result<Self, SinkDown> {
        // Installs the cryptography provider that all connections of Milepost use. Has no effect if the process has already installed another.
        let _ = ring::default_provider().install_default();
        let (breaks, broken) = watch::channel(false);
        let options = place
            .options()
            .connection_timeout(timeout)
            .request_timeout(Some(timeout))
            // Tries each server once, at the start and after a break: messages in an abandoned connection are sent immediately or never.
            .max_reconnects(place.servers.len())
            .event_callback(move |happening| {
                if matches!(happening, Happening::Disconnected | Happening::Closed) {
                    breaks.send_replace(true);
                }
                async {}
            });
        let client = options.connect(&place.servers[..]).await;
        let client = client.map_err(|error| SinkDown::now(&place.name, why_not_connected(&error)))?;
        let jetstream = ContextBuilder::new().timeout(timeout).build(client);
        Ok(Self { place: place.name.clone(), jetstream, broken, suspect: AtomicBool::new(false) })
    }

    /// Creates a stream that stores messages in files, if no stream has this name.
    pub(super) async fn create_stream(&self, name: &str, subjects: String) -> Result<(), SinkDown> {
        let config =
            stream::Config { name: name.to_owned(), subjects: vec![subjects], ..stream::Config::default() };
        let made = self.jetstream.get_or_create_stream(config).await;
        made.map(drop).map_err(|error| {
            SinkDown::now(&self.place, format!("the stream {name:?} cannot be created: {}", in_full(&error)))
        })
    }

    /// Publishes a message and waits for its answer.
    pub(super) async fn publish(
        &self,
        subject: String,
        publish: PublishMessage,
        deadline: Instant,
    ) -> PublishResult {
        let asking = async {
            let ack = self.jetstream.send_publish(subject.clone(), publish).await?;
            ack.await
        };
        let mut broken = self.broken.clone();
        let answer = tokio::select! {
            biased;
            answer = tokio::time::timeout_at(deadline, asking) => answer,
            _ = broken.wait_for(|broken| *broken) => return self.unknown("the connection broke before it was answered"),
        };
        match answer {
            Ok(Ok(_)) => PublishResult::Known(Delivery::Acknowledged),
            Ok(Err(error)) => self.refusal(&error, subject),
            Err(_) => self.unknown("no answer in time"),
        }
    }

    fn refusal(&self, error: &PublishError, subject: String) -> PublishResult {
        let why = in_full(error);
        match error.kind() {
            PublishErrorKind::StreamNotFound => PublishResult::NoStream { subject },
            PublishErrorKind::MaxPayloadExceeded => PublishResult::Known(Delivery::Unacceptable { why }),
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => self.unknown(&why),
            _ => PublishResult::Known(match said_by_server(error) {
                Some(
                    ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM,
                ) => Delivery::Unacceptable { why },
                Some(_) => Delivery::Refused { why },
                None => return self.unknown(&why),
            }),
        }
    }

    fn unknown(&self, why: &str) -> PublishResult {
        self.suspect.store(true, Ordering::Relaxed);
        PublishResult::Known(Delivery::Unknown { why: why.to_owned() })
    }
}

impl Connection for Session {
    fn is_usable(&self) -> bool {
        !*self.broken.borrow() && !self.suspect.load(Ordering::Relaxed)
    }
}

/// Returns the error code of the server, if the server reported one.
fn said_by_server(error: &PublishError) -> Option<ErrorCode> {
    let source = error.source()?.downcast_ref::<jetstream::Error>()?;
    Some(source.error_code())
}

fn why_not_connected(error: &async_nats::ConnectError) -> String {
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "it rejects the user, password or token".to_owned()
        }
        _ => in_full(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers_and_never_shows_its_secret() {
        let place = |url: &str| Address::parse(url).map(|place| place.name);
        assert_eq!(place("nats://ada:s3cret@broker"), Ok("NATS at broker:4222".to_owned()));
        assert_eq!(place("tls://s3cret@a:1, nats://b:2"), Ok("NATS at a:1 (TLS), b:2".to_owned()));
        assert!(!format!("{:?}", Address::parse("nats://ada:s3cret@broker").unwrap()).contains("s3cret"));
        for bad in ["", "broker:4222", "ws://s3cret@broker", "nats://ada:s3cret@", "nats://ada:s3cret@a:x"] {
            let why = Address::parse(bad).unwrap_err().to_string();
            assert!(!why.contains("s3cret") && why.contains("nats://"), "{bad}: {why}");
        }
    }
}
