//! Interpretation of a webhook receiver's response.

use std::time::Duration;

use milepost_core::secrets::Secrets;
use milepost_core::text::is_unprintable;
use milepost_http::Capped;
use reqwest::{Response, StatusCode, Url};
use tokio::time::{Instant, timeout_at};

use crate::sink::{Delivery, SinkDown};

/// How much of a body is read: enough to reuse the connection and to show the error.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// How long to wait for the body; the status is already known.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// The result of an event.
pub(super) enum PushResult {
    Known(Delivery),
    /// The event was not accepted, and no other event would be.
    Down(SinkDown),
    /// The event was not sent: the time limit was reached, or the receiver accepts nothing.
    NotSent,
}

impl PushResult {
    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self::Known(Delivery::Unknown { why: why.into() })
    }
}

/// Converts a response to a result.
pub(super) async fn of(
    response: Response,
    url: &Url,
    secrets: &Secrets,
    place: &str,
    deadline: Instant,
) -> PushResult {
    let status = response.status();
    let redirect = milepost_http::leads_to(&response, url).filter(|_| status.is_redirection());
    let wait = milepost_http::retry_after(response.headers());
    let mut body = Capped::default();
    // The status is sufficient if the body does not arrive.
    let deadline = deadline.min(Instant::now() + BODY_TIMEOUT);
    let _ = timeout_at(deadline, milepost_http::read(response, &mut body, BODY_BYTES_MAX)).await;
    let why = || milepost_http::in_words(status, redirect.as_deref(), &printable(&secrets.hide(body.text())));
    match status {
        status if status.is_success() => PushResult::Known(Delivery::Acknowledged),
        StatusCode::GONE => PushResult::Down(SinkDown { for_good: true, ..SinkDown::now(place, why()) }),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            PushResult::Down(SinkDown { retry_after: wait, ..SinkDown::now(place, why()) })
        }
        StatusCode::PAYLOAD_TOO_LARGE => PushResult::Known(Delivery::Unacceptable { why: why() }),
        _ => PushResult::Known(Delivery::Refused { why: why() }),
    }
}

fn printable(text: &str) -> String {
    text.replace(is_unprintable, " ")
}
