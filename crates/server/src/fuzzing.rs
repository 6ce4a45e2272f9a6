//! A server without a socket, for the fuzz targets of the workspace. Not part of the public API.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use milepost_core::port::Store;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::{Options, ServerError, router};

/// A server that answers requests of the same process.
#[derive(Debug)]
pub struct Server(Router);

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The header `Content-Type`; empty if there is none.
    pub content_type: String,
    /// The complete body.
    pub body: Vec<u8>,
}

impl Server {
    /// Creates a server over a store. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// A route of the API has no role: a defect.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, ServerError> {
        router(store, Options::default(), CancellationToken::new()).map(Self)
    }

    /// Answers a request with a JSON body; `None` if this is not a request that an HTTP client can send, or if the response cannot be read.
    pub async fn answer(&self, method: &str, path: &str, body: &[u8]) -> Option<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_vec()))
            .ok()?;
        let Ok(response) = self.0.clone().call(request).await;
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.ok()?.to_vec();
        Some(Answer { status, content_type, body })
    }
}
