//! Bodies of requests that are refused before they were read: the connection cannot be used for another request, and the response says so.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

/// A body, and whether it was read to its end.
struct Watched {
    body: Body,
    read: Arc<AtomicBool>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.read.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether the body of a request was read to its end; `None`: it has none.
pub(super) struct Reading(Option<Arc<AtomicBool>>);

/// Returns the request with a body that is watched.
pub(super) fn watch(request: Request) -> (Request, Reading) {
    if request.body().is_end_stream() {
        return (request, Reading(None));
    }
    let read = Arc::new(AtomicBool::new(false));
    let reading = Reading(Some(Arc::clone(&read)));
    (request.map(|body| Body::new(Watched { body, read })), reading)
}

impl Reading {
    /// Adds `Connection: close` to the response if the body was not read.
    pub(super) fn tell(&self, response: &mut Response) {
        if self.0.as_ref().is_some_and(|read| !read.load(Ordering::Relaxed)) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}
