//! The OpenTelemetry span of a request. Its parent is the client's `traceparent`; jobs, batches and events that the request
//! creates follow from it.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use milepost_core::trace::{TRACEPARENT, Traceparent};
use opentelemetry::trace::{FutureExt, SpanKind, SpanRef, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, global};

/// The name of the tracer: the instrumenting library.
const TRACER: &str = "milepost_server";

/// Runs a request within a span. The attributes follow the semantic conventions for HTTP.
pub(crate) async fn trace(request: Request, next: Next) -> Response {
    let context = begin(&request);
    let response = next.run(request).with_context(context.clone()).await;
    let (span, status) = (context.span(), response.status());
    if span.is_recording() {
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            span.set_status(Status::error(status.to_string()));
        }
    }
    span.end();
    response
}

/// Starts the span. An invalid `traceparent` header starts a new trace, as the specification requires.
fn begin(request: &Request) -> Context {
    let header = request.headers().get(TRACEPARENT).and_then(|header| header.to_str().ok());
    let parent = header
        .and_then(|header| header.parse::<Traceparent>().ok())
        .map_or_else(Context::new, Traceparent::context);
    let tracer = global::tracer(TRACER);
    let (method, path) = (request.method(), request.extensions().get::<MatchedPath>());
    let route = path.map(MatchedPath::as_str);
    let name = route.map_or_else(|| method.to_string(), |route| format!("{method} {route}"));
    let builder = tracer.span_builder(name).with_kind(SpanKind::Server);
    let context = parent.with_span(tracer.build_with_context(builder, &parent));
    describe(&context.span(), request, route);
    context
}

fn describe(span: &SpanRef<'_>, request: &Request, route: Option<&str>) {
    if !span.is_recording() {
        return;
    }
    span.set_attributes([
        KeyValue::new("http.request.method", request.method().to_string()),
        KeyValue::new("url.path", request.uri().path().to_owned()),
    ]);
    if let Some(route) = route {
        span.set_attribute(KeyValue::new("http.route", route.to_owned()));
    }
}
