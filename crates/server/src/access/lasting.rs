//! Answers that go on: they end when their reader may not read on.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures::StreamExt;
use milepost_core::port::Store;
use milepost_core::token::Standing;

/// How often it is asked whether a token still counts.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long a stream may go on for somebody who is known. A reader comes back, and shows again who it is.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// Ends a stream when the token of its reader does not count any more; other answers are left as they are.
pub(super) fn while_valid(response: Response, store: Arc<dyn Store>, token: Arc<str>) -> Response {
    if response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind != "text/event-stream") {
        return response;
    }
    response.map(|body| {
        let over = async move { drop(tokio::time::timeout(LASTS, invalid(store, token)).await) };
        Body::from_stream(body.into_data_stream().take_until(Box::pin(over)))
    })
}

/// Waits until a token does not count. A store that does not answer says nothing.
async fn invalid(store: Arc<dyn Store>, token: Arc<str>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match store.token(&token).await {
            Ok(Some(found)) if found.standing() == Standing::Valid => {}
            Ok(_) => return,
            Err(error) => tracing::debug!(error = error.chain(), "whether a stream may go on is not known"),
        }
    }
}
