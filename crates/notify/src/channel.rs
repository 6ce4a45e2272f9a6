//! Channels: how messages reach a target.

use std::fmt;

use milepost_http::{SecretUrl, WebhookSecret};

use crate::fault::{InvalidChannel, SendError};
use crate::mail::Mail;
use crate::message::Message;
use crate::post::{Format, Post};

/// The settings of a channel.
#[derive(Clone, Debug)]
pub enum ChannelConfig {
    /// A webhook: a signed HTTP request with a JSON document.
    Webhook {
        /// The URL: `https://…`, or `http://…` in the allowed networks.
        url: SecretUrl,
        /// The secrets that requests are signed with.
        secrets: Vec<WebhookSecret>,
    },
    /// An incoming webhook of Slack, or of a chat that accepts the same: `{"text": …}`.
    Slack {
        /// The URL.
        url: SecretUrl,
    },
    /// E-mail.
    Mail {
        /// The server: `smtps://USER:PASSWORD@HOST`, or `smtp://…` with STARTTLS; `smtp://HOST?tls=none` in the allowed networks.
        url: SecretUrl,
        /// The sender.
        from: String,
        /// The recipients.
        to: Vec<String>,
    },
}

/// A channel that is ready to send.
pub struct Channel(Kind);

enum Kind {
    Post(Box<Post>),
    Mail(Box<Mail>),
}

// No derived `Debug`: URLs are secret.
impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channel").field(&self.place()).finish()
    }
}

impl Channel {
    /// Creates a channel. Does not connect. `allow_networks`: networks to which it may connect, besides the public internet.
    ///
    /// # Errors
    /// [`InvalidChannel`] if a setting cannot be used.
    pub fn open(config: &ChannelConfig, allow_networks: &[String]) -> Result<Self, InvalidChannel> {
        Ok(Self(match config {
            ChannelConfig::Webhook { url, secrets } => {
                let format = Format::webhook(secrets)?;
                Kind::Post(Box::new(Post::open("webhook", url, format, allow_networks)?))
            }
            ChannelConfig::Slack { url } => {
                Kind::Post(Box::new(Post::open("slack", url, Format::Slack, allow_networks)?))
            }
            ChannelConfig::Mail { url, from, to } => {
                Kind::Mail(Box::new(Mail::open(url, from, to, allow_networks)?))
            }
        }))
    }

    /// Returns where it sends messages, without secrets.
    #[must_use]
    pub fn place(&self) -> &str {
        match &self.0 {
            Kind::Post(post) => post.place(),
            Kind::Mail(mail) => mail.place(),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`SendError`] if the receiver has not accepted it, or did not answer in time.
    pub async fn send(&self, message: &Message<'_>) -> Result<(), SendError> {
        match &self.0 {
            Kind::Post(post) => post.send(message).await,
            Kind::Mail(mail) => mail.send(message).await,
        }
    }
}
