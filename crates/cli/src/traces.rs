//! Traces: sent with OTLP to the endpoint in the OpenTelemetry environment variables; disabled without one.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use milepost::trace::{TRACEPARENT, Traceparent};
use opentelemetry::{ContextGuard, Key, global};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    SpanExporter, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use reqwest::Url;

use crate::args::Command;

/// The time that a stopping process waits for the collector to accept the remaining spans.
const FLUSH_MAX: Duration = Duration::from_secs(3);
/// The maximum number of spans that wait for the collector.
const SPANS_MAX: u64 = 1_000_000;
const SERVICE_NAME: Key = Key::from_static_str("service.name");

/// The trace exporter. [`end`](Self::end) sends the remaining spans.
pub(crate) struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Starts the exporter for a long-running command, if an endpoint is configured.
    pub(crate) fn start(command: &Command) -> Result<Self> {
        let stays = command.is_daemon();
        let Some((endpoint, name)) = endpoint().filter(|_| stays && !is_off()) else {
            return Ok(Self(None));
        };
        check_sizes(|name| env::var(name).ok())?;
        let exporter =
            exporter(&endpoint).with_context(|| format!("cannot send traces as requested by {name}"))?;
        let provider =
            SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
        global::set_tracer_provider(provider.clone());
        Ok(Self(Some(provider)))
    }

    /// Sends the remaining spans.
    pub(crate) fn end(self) {
        if let Some(Err(error)) = self.0.map(|provider| provider.shutdown_with_timeout(FLUSH_MAX)) {
            tracing::warn!(%error, "the last spans of the traces may not have reached their collector");
        }
    }
}

/// Makes the span in `TRACEPARENT`, which the calling process sets, the parent of everything that the command creates.
pub(crate) fn of_caller() -> Option<ContextGuard> {
    let caller = env::var(TRACEPARENT.to_ascii_uppercase()).ok()?;
    caller.parse::<Traceparent>().ok().map(|caller| caller.context().attach())
}

/// Returns the endpoint of the collector, and the variable that contains it.
fn endpoint() -> Option<(String, &'static str)> {
    [OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT].into_iter().find_map(|name| {
        let value = env::var(name).ok().filter(|value| !value.is_empty())?;
        Some((value, name))
    })
}

/// Refuses sizes for which the exporter would reserve more memory than a machine has.
fn check_sizes(variable: impl Fn(&str) -> Option<String>) -> Result<()> {
    for name in ["OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"] {
        let Some(given) = variable(name) else { continue };
        if given.parse::<u64>().is_ok_and(|size| size > SPANS_MAX) {
            bail!("{name} is {given}: at most {SPANS_MAX} spans can be kept; the default is 2048");
        }
    }
    Ok(())
}

fn is_off() -> bool {
    let is = |name, value: &str| env::var(name).is_ok_and(|given| given.eq_ignore_ascii_case(value));
    is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none")
}

fn exporter(endpoint: &str) -> Result<SpanExporter> {
    for name in [OTEL_EXPORTER_OTLP_PROTOCOL, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] {
        if let Ok(protocol) = env::var(name)
            && protocol != "http/protobuf"
        {
            bail!(
                "{name} is {protocol}: this program sends http/protobuf, which collectors accept at port 4318"
            );
        }
    }
    let url: Url = endpoint.parse().with_context(|| format!("{endpoint:?} is not a URL"))?;
    let client = reqwest::blocking::Client::builder()
        .tls_backend_preconfigured(milepost_http::tls_config(&url)?)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    Ok(SpanExporter::builder().with_http().with_http_client(client).build()?)
}

/// Returns the service name from the environment, else `milepost`.
fn resource() -> Resource {
    let said = Resource::builder().build();
    let unnamed = said.get(&SERVICE_NAME).is_none_or(|name| name.as_str().starts_with("unknown_service"));
    let named = Resource::builder();
    if unnamed { named.with_service_name("milepost").build() } else { named.build() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_no_memory_could_hold_is_refused() {
        let check =
            |given: &str| check_sizes(|name| (name == "OTEL_BSP_MAX_QUEUE_SIZE").then(|| given.to_owned()));
        for given in ["2048", "1000000", "", "many"] {
            assert!(check(given).is_ok(), "{given}");
        }
        for given in ["1000001", "99999999999999999", "18446744073709551615"] {
            let refused = check(given).unwrap_err().to_string();
            assert!(
                refused.contains("OTEL_BSP_MAX_QUEUE_SIZE") && refused.contains("at most 1000000"),
                "{refused}"
            );
        }
    }
}
