//! The span of an attempt. It follows from the span that enqueued the job; jobs and events that its handler creates follow from it. Without
//! an OpenTelemetry tracer nothing is recorded, but the job's trace is still propagated.

use milepost_core::claim::ClaimedJob;
use milepost_core::trace::Traceparent;
use opentelemetry::trace::{FutureExt, SpanKind, SpanRef, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, global};

use crate::attempt::Attempted;

/// The tracer's name: the library that records.
const TRACER: &str = "milepost";

/// Runs an attempt in a span. The attributes follow the semantic conventions for messaging, where these define them.
pub(crate) async fn traced(job: &ClaimedJob, attempt: impl Future<Output = Attempted>) -> Attempted {
    let context = begin(job);
    let answer = attempt.with_context(context.clone()).await;
    let span = context.span();
    if let Err(error) = &answer.outcome {
        span.set_attribute(KeyValue::new("error.type", error.code.clone()));
        span.set_status(Status::error(error.code.clone()));
    }
    span.end();
    answer
}

fn begin(job: &ClaimedJob) -> Context {
    let tracer = global::tracer(TRACER);
    let parent = job.traceparent.map_or_else(Context::new, Traceparent::context);
    let builder = tracer.span_builder(job.kind.clone()).with_kind(SpanKind::Consumer);
    let context = parent.with_span(tracer.build_with_context(builder, &parent));
    describe(&context.span(), job);
    context
}

fn describe(span: &SpanRef<'_>, job: &ClaimedJob) {
    if !span.is_recording() {
        return;
    }
    span.set_attributes([
        KeyValue::new("messaging.system", "milepost"),
        KeyValue::new("messaging.operation.type", "process"),
        KeyValue::new("messaging.destination.name", job.queue.clone()),
        KeyValue::new("messaging.message.id", job.run.job.to_string()),
        KeyValue::new("milepost.kind", job.kind.clone()),
        KeyValue::new("milepost.attempt", i64::from(job.attempt)),
        KeyValue::new("milepost.run_token", i64::from(job.run.token.0)),
    ]);
    if let Some(batch) = job.batch {
        span.set_attribute(KeyValue::new("milepost.batch.id", batch.to_string()));
    }
}
