//! Sink: webhooks. Each event is a signed HTTP request.

mod push_result;
mod request;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use milepost_core::event::Event;
use milepost_core::secrets::Secrets;
pub use milepost_http::WebhookSecret;
use milepost_http::{Guard, Networks, Signer, in_full};
use reqwest::{Client, Url};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use self::push_result::PushResult;
use super::setting::{self, InvalidSink, SecretUrl};
use super::{Delivery, Sink, SinkDown};

/// The maximum number of concurrent requests of a call.
const CONCURRENCY_MAX: usize = 256;

/// A webhook: each event is posted separately. An acknowledgement means that the receiver answered with 2xx.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The URL to which events are posted: `https://…`, or `http://…` only in networks of `allow_networks`.
    pub url: SecretUrl,
    /// The secrets that requests are signed with, 1 to 10: `whsec_` and 24 to 64 bytes in base64.
    pub secrets: Vec<WebhookSecret>,
    /// Networks to which connections are allowed, besides the public internet, such as `10.0.0.0/8`. The default is none.
    #[serde(default)]
    pub allow_networks: Vec<String>,
    /// The maximum number of concurrent requests of a call. The default is 8.
    #[serde(default = "concurrency_default")]
    pub concurrency: usize,
    /// The CloudEvents attribute `source` of all events. The default is `milepost`.
    #[serde(default = "setting::source_default")]
    pub source: String,
    /// The time limit of a request. A call that has taken this long starts no further requests. The default is 5000.
    #[serde(default = "setting::timeout_default_ms")]
    pub timeout_ms: u64,
}

const fn concurrency_default() -> usize {
    8
}

/// Posts events to a URL.
pub(super) struct Webhook {
    place: String,
    client: Client,
    url: Url,
    /// Parts of the URL that must be removed from quoted responses.
    secrets: Secrets,
    signer: Signer,
    concurrency: usize,
    source: String,
    timeout: Duration,
    /// The time before which the receiver wants no requests, and its error.
    rest: Mutex<Option<(Instant, SinkDown)>>,
}

// No derived `Debug`: the path of the URL may be secret.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Webhook {
    pub(super) fn open(config: &WebhookConfig) -> Result<Self, InvalidSink> {
        let url =
            milepost_http::guarded_url(config.url.expose()).map_err(|why| InvalidSink::new("url", why))?;
        let networks = networks(&config.allow_networks, &url)?;
        networks.check_url(&url).map_err(|why| InvalidSink::new("url", why.to_string()))?;
        Self::guarded(config, url, Guard::new(networks))
    }

    fn guarded(config: &WebhookConfig, url: Url, guard: Guard) -> Result<Self, InvalidSink> {
        if !(1..=CONCURRENCY_MAX).contains(&config.concurrency) {
            return Err(InvalidSink::new("concurrency", format!("it must be 1 to {CONCURRENCY_MAX}")));
        }
        let timeout = setting::timeout(config.timeout_ms)?;
        let client = milepost_http::guarded_client(&url, guard, timeout)
            .map_err(|why| InvalidSink::new("url", why))?;
        Ok(Self {
            place: format!("the webhook at {}", milepost_http::origin(&url)),
            client,
            secrets: Secrets::new(milepost_http::secret_parts(&url)),
            url,
            signer: Signer::new(&config.secrets)
                .map_err(|why| InvalidSink::new("secrets", why.to_string()))?,
            concurrency: config.concurrency,
            source: setting::source(&config.source)?,
            timeout,
            rest: Mutex::default(),
        })
    }

    /// Posts an event, unless the time limit is reached or the receiver has refused all events in the response to another one.
    async fn post(&self, event: &Event, down: &OnceLock<SinkDown>, begin_until: Instant) -> PushResult {
        let now = Instant::now();
        if down.get().is_some() || now >= begin_until {
            return PushResult::NotSent;
        }
        let deadline = now + self.timeout;
        let headers = match request::headers(event, &self.source, &self.signer) {
            Ok(headers) => headers,
            Err(why) => return PushResult::Known(Delivery::Unacceptable { why }),
        };
        let body = event.payload.get().to_owned();
        let posting = self.client.post(self.url.clone()).headers(headers).body(body).send();
        let answer = match timeout_at(deadline, posting).await {
            Ok(Ok(response)) => {
                push_result::of(response, &self.url, &self.secrets, &self.place, deadline).await
            }
            Ok(Err(error)) if error.is_connect() => {
                PushResult::Down(SinkDown::now(&self.place, in_full(&error.without_url())))
            }
            Ok(Err(error)) => PushResult::unknown(in_full(&error.without_url())),
            Err(_) => PushResult::unknown(format!("no answer within {:?}", self.timeout)),
        };
        if let PushResult::Down(why) = &answer {
            let _ = down.set(why.clone());
        }
        answer
    }

    /// Returns the error with which the receiver requested a pause, if the pause has not ended.
    fn resting(&self) -> Option<SinkDown> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, down) = rest.clone()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            *rest = None;
            return None;
        }
        Some(SinkDown { retry_after: Some(left), ..down })
    }

    fn note(&self, down: &SinkDown) {
        if let Some(until) = down.retry_after.and_then(|wait| Instant::now().checked_add(wait)) {
            *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some((until, down.clone()));
        }
    }
}

#[async_trait]
impl Sink for Webhook {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        if let Some(down) = self.resting() {
            return Err(down);
        }
        let (begin_until, down) = (Instant::now() + self.timeout, OnceLock::new());
        let post = async |(place, event)| (place, self.post(event, &down, begin_until).await);
        let posting: Vec<_> = events.iter().enumerate().map(post).collect();
        // In any order, so that a slow request delays no others.
        let answers = futures::stream::iter(posting).buffer_unordered(self.concurrency);
        let answers: BTreeMap<usize, PushResult> = answers.collect().await;
        let first = answers.into_values().map_while(|answer| match answer {
            PushResult::Known(delivery) => Some(delivery),
            PushResult::Down(_) | PushResult::NotSent => None,
        });
        let deliveries: Vec<_> = first.collect();
        match down.into_inner() {
            Some(down) => {
                self.note(&down);
                if deliveries.is_empty() { Err(down) } else { Ok(deliveries) }
            }
            None => Ok(deliveries),
        }
    }
}

/// Returns the allowed networks; public addresses are allowed only with https.
fn networks(allowed: &[String], url: &Url) -> Result<Networks, InvalidSink> {
    Networks::parse(allowed, url.scheme() == "https")
        .map_err(|why| InvalidSink::new("allow_networks", why.to_string()))
}

#[cfg(test)]
mod tests;
