//! Messages as HTTP requests: webhooks and chats.

use std::time::Duration;

use milepost_core::secrets::Secrets;
use milepost_core::text::is_unprintable;
use milepost_http::{Capped, Guard, Networks, SecretUrl, Signer, WebhookSecret, in_full};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde_json::json;
use tokio::time::timeout;

use crate::fault::{InvalidChannel, SendError};
use crate::message::Message;

/// The time limit of a request: less than the lease of a claim.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a response is read.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// The body of requests.
pub(crate) enum Format {
    /// The JSON document of a message, signed.
    Webhook(Signer),
    /// `{"text": …}`.
    Slack,
}

impl Format {
    pub(crate) fn webhook(secrets: &[WebhookSecret]) -> Result<Self, InvalidChannel> {
        let signer = Signer::new(secrets);
        signer.map(Self::Webhook).map_err(|why| InvalidChannel::new("secrets", why.to_string()))
    }
}

/// Posts messages to a URL.
pub(crate) struct Post {
    place: String,
    client: Client,
    url: Url,
    /// Parts of the URL that must be removed from quoted responses.
    secrets: Secrets,
    format: Format,
}

impl Post {
    pub(crate) fn open(
        setting: &'static str,
        url: &SecretUrl,
        format: Format,
        allow_networks: &[String],
    ) -> Result<Self, InvalidChannel> {
        let url =
            milepost_http::guarded_url(url.expose()).map_err(|why| InvalidChannel::new(setting, why))?;
        let networks = Networks::parse(allow_networks, url.scheme() == "https")
            .map_err(|why| InvalidChannel::new("allow_networks", why.to_string()))?;
        networks.check_url(&url).map_err(|why| InvalidChannel::new(setting, why.to_string()))?;
        let client = milepost_http::guarded_client(&url, Guard::new(networks), TIMEOUT)
            .map_err(|why| InvalidChannel::new(setting, why))?;
        Ok(Self {
            place: milepost_http::origin(&url),
            client,
            secrets: Secrets::new(milepost_http::secret_parts(&url)),
            url,
            format,
        })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) async fn send(&self, message: &Message<'_>) -> Result<(), SendError> {
        let late = SendError::new(format!("{} did not answer within {TIMEOUT:?}", self.place));
        timeout(TIMEOUT, self.post(message)).await.unwrap_or(Err(late))
    }

    async fn post(&self, message: &Message<'_>) -> Result<(), SendError> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let request = match &self.format {
            Format::Slack => request.body(json!({ "text": escaped(&message.text()) }).to_string()),
            Format::Webhook(signer) => {
                let (body, timestamp) = (message.json().to_string(), message.sent_at.as_second());
                request
                    .header("webhook-id", &message.id)
                    .header("webhook-timestamp", timestamp.to_string())
                    .header("webhook-signature", signer.sign(&message.id, timestamp, body.as_bytes()))
                    .body(body)
            }
        };
        let response = request.send().await.map_err(|error| self.failed(&in_full(&error.without_url())))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let redirect = milepost_http::leads_to(&response, &self.url).filter(|_| status.is_redirection());
        let retry_after = milepost_http::retry_after(response.headers());
        let mut body = Capped::default();
        // The status is sufficient if the body does not arrive.
        let _ = milepost_http::read(response, &mut body, BODY_BYTES_MAX).await;
        let text = self.secrets.hide(body.text()).replace(is_unprintable, " ");
        let why = milepost_http::in_words(status, redirect.as_deref(), &text);
        Err(SendError { retry_after, ..self.failed(&why) })
    }

    fn failed(&self, why: &str) -> SendError {
        SendError::new(format!("{}: {}", self.place, self.secrets.hide(why.to_owned())))
    }
}

/// Escapes what Slack reads as markup of links and mentions.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
