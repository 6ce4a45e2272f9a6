//! `[subscription.NAME]`: which events are published to which sink, or start which work.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use milepost_core::event::{Begin, Changes, Exhausted, PageSize, RESERVED, Subscription, SubscriptionFilter};
use milepost_core::event_work::{Condition, InvalidWork, WorkTemplate};
use milepost_relay::publisher::{Destination, PublisherOptions};
use milepost_relay::sink::{
    self, JsonlConfig, KafkaConfig, NatsConfig, NullConfig, RabbitmqConfig, RedisConfig, SinkConfig,
    WebhookConfig,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::backoff::{self, Backoff};
use super::document::{Entry, Node};
use super::event_work::{self, EnqueueEntry, SignalEntry, StartEntry};
use super::fault::Faults;
use super::humane::Humane;
use super::{kind, worker};

/// The keys of the available sinks, and of the work that events can start instead.
const SINKS: &[&str] =
    &["null", "jsonl", "nats", "redis", "rabbitmq", "kafka", "webhook", "enqueue", "start", "signal"];

/// Publishes events to one sink, or starts work for them, in the order of each aggregate (docs/RELAY.md). The subscription's position
/// in the log is stored under its name.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionEntry {
    /// Only events of these aggregate types. The default is all emitted events.
    #[serde(default)]
    #[schemars(length(min = 1))]
    aggregate_types: Vec<String>,
    /// State changes of jobs and batches, instead of emitted events.
    #[serde(default)]
    changes: Option<ChangesEntry>,
    /// Only events of these types. The default is all.
    #[serde(default)]
    #[schemars(length(min = 1))]
    event_types: Vec<String>,
    /// Only events that meet this condition, a CEL expression such as `event.payload.total > 100`. The default is all.
    #[serde(default)]
    filter: Option<String>,
    /// The start of a new subscription: `beginning`, with the oldest existing event (the default), or `now`.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["beginning", "now"]))]
    begin: Begin,
    /// The maximum number of events per page. The default is 5000.
    #[serde(default = "page_events_max_default")]
    #[schemars(range(min = 1, max = 100_000))]
    page_events_max: u32,
    /// The maximum size of the payloads per page, in MiB. The default is 16.
    #[serde(default = "page_mib_max_default")]
    #[schemars(range(min = 1, max = 1024))]
    page_mib_max: u32,
    /// How long events are collected after a hint of new events. The default is `0s`.
    #[serde(default)]
    linger: Option<Humane>,
    /// How long a publisher may be silent before others take over its slots. The default is `10s`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    lease: Option<Humane>,
    /// The maximum number of attempts of an event, including the first. The default is 20.
    #[serde(default = "deliveries_max_default")]
    #[schemars(range(min = 1, max = 1_000_000))]
    deliveries_max: u32,
    /// How long an event whose delivery failed waits before it is retried. The default cap is `5m`.
    #[serde(default)]
    backoff: Option<Backoff>,
    /// What happens after the last attempt of an event: `halt` (the aggregate waits for an operator; the default), `skip_event` or
    /// `dead_letter` (the aggregate continues with the next event).
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["halt", "skip_event", "dead_letter"]))]
    exhausted: Exhausted,
    /// Discards events: for measurements without a sink.
    #[serde(default)]
    null: Option<NullConfig>,
    /// A file, or the standard output.
    #[serde(default)]
    jsonl: Option<JsonlConfig>,
    /// NATS JetStream.
    #[serde(default)]
    nats: Option<NatsConfig>,
    /// Redis Streams.
    #[serde(default)]
    redis: Option<RedisConfig>,
    /// RabbitMQ.
    #[serde(default)]
    rabbitmq: Option<RabbitmqConfig>,
    /// Kafka. Not part of every build.
    #[serde(default)]
    kafka: Option<KafkaConfig>,
    /// A webhook.
    #[serde(default)]
    webhook: Option<WebhookConfig>,
    /// Enqueues a job for each event, exactly once. `payload`, `key` and `group` may contain expressions over the event, written `$${ event.aggregate_id }`
    /// here.
    #[serde(default)]
    enqueue: Option<EnqueueEntry>,
    /// Starts a batch for each event, exactly once. `key` and `input` may contain expressions over the event, written `$${ event.aggregate_id }` here.
    #[serde(default)]
    start: Option<StartEntry>,
    /// Sends a signal to a batch for each event, exactly once. `batch` and `payload` may contain expressions over the event, written
    /// `$${ event.payload.batch }` here.
    #[serde(default)]
    signal: Option<SignalEntry>,
}

/// The jobs and batches whose state changes a subscription publishes.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesEntry {
    /// State changes of jobs of these kinds; the name of a bulk job is the kind of its jobs.
    #[serde(default)]
    kinds: Vec<String>,
    /// State changes of batches of these DAGs.
    #[serde(default)]
    dags: Vec<String>,
}

impl ChangesEntry {
    fn changes(&self) -> Changes {
        Changes { kinds: self.kinds.clone(), dags: self.dags.clone() }
    }
}

const fn page_events_max_default() -> u32 {
    5_000
}

const fn page_mib_max_default() -> u32 {
    16
}

const fn deliveries_max_default() -> u32 {
    milepost_core::event::DELIVERIES_MAX_DEFAULT
}

impl SubscriptionEntry {
    /// Returns the options of its publishers; `label` is their name.
    pub(crate) fn options(&self, name: &str, label: String) -> Result<PublisherOptions> {
        let default = Subscription::new(name);
        let subscription = Subscription {
            filter: SubscriptionFilter {
                aggregate_types: self.aggregate_types.clone(),
                event_types: self.event_types.clone(),
            },
            deliveries_max: self.deliveries_max,
            backoff: self
                .backoff
                .as_ref()
                .map_or(default.backoff, |backoff| backoff.policy_over(default.backoff)),
            exhausted: self.exhausted,
            ..default
        };
        let subscription = match &self.changes {
            Some(changes) => subscription.changes(changes.changes()),
            None => subscription,
        };
        let condition = self.filter.as_deref().map(Condition::compile).transpose();
        let condition = condition.with_context(|| format!("the filter of the subscription {name}"))?;
        let default = PublisherOptions::new(subscription, label);
        Ok(PublisherOptions {
            condition,
            begin: self.begin,
            page: PageSize {
                events_max: self.page_events_max as usize,
                bytes_max: self.page_mib_max as usize * 1024 * 1024,
            },
            linger: self.linger.map_or(Duration::ZERO, |time| time.0),
            lease: self.lease.map_or(default.lease, |time| time.0),
            ..default
        })
    }

    /// Returns its sink, which does not connect yet, or the work that its events start. Paths are relative to `folder`.
    pub(crate) fn destination(&self, name: &str, folder: &Path) -> Result<Destination> {
        if let Some(template) = self.template() {
            let template = template.with_context(|| format!("the work of the subscription {name}"))?;
            return Ok(Destination::Work(template));
        }
        let config = self.sink_config(folder).context("it has no sink")?;
        let sink = sink::open(&config).with_context(|| format!("the sink of the subscription {name}"))?;
        Ok(Destination::Sink(sink))
    }

    fn template(&self) -> Option<Result<Arc<WorkTemplate>, InvalidWork>> {
        event_work::template(self.enqueue.as_ref(), self.start.as_ref(), self.signal.as_ref())
    }

    fn sink_config(&self, folder: &Path) -> Option<SinkConfig> {
        let jsonl = self.jsonl.clone().map(|config| {
            let path = config.path.map(|path| folder.join(path));
            SinkConfig::Jsonl(JsonlConfig { path, ..config })
        });
        let null = self.null.clone().map(SinkConfig::Null);
        let nats = self.nats.clone().map(SinkConfig::Nats);
        let redis = self.redis.clone().map(SinkConfig::Redis);
        let rabbitmq = self.rabbitmq.clone().map(SinkConfig::Rabbitmq);
        let kafka = self.kafka.clone().map(SinkConfig::Kafka);
        let webhook = self.webhook.clone().map(SinkConfig::Webhook);
        [null, jsonl, nats, redis, rabbitmq, kafka, webhook].into_iter().flatten().next()
    }
}

// URLs of sinks contain secrets.
impl std::fmt::Debug for SubscriptionEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubscriptionEntry").finish_non_exhaustive()
    }
}

pub(super) fn check(subscriptions: Option<&Node>, folder: &Path, faults: &mut Faults) {
    for entry in subscriptions.map(Node::entries).unwrap_or_default() {
        check_one(entry, folder, faults);
    }
}

fn check_one(Entry { key: name, at, node }: &Entry, folder: &Path, faults: &mut Faults) {
    if let Err(why) = kind::check_name("subscription", name) {
        faults.add(*at, why, "give it a name of 1 to 200 bytes without control characters");
    }
    if !node.is_table() {
        return;
    }
    backoff::check(node.get("backoff"), Subscription::new(name).backoff, faults);
    worker::check_lease(node.get("lease"), "10s", faults);
    check_changes(name, node, faults);
    check_filter(name, node, faults);
    let given: Vec<&str> = SINKS.iter().copied().filter(|sink| node.get(sink).is_some()).collect();
    match given[..] {
        [] => faults.add(
            *at,
            format!("the subscription {name} has no sink"),
            format!(
                "add one of {}, such as jsonl = {{ path = \"events.jsonl\" }} (docs/SINKS.md)",
                SINKS.join(", ")
            ),
        ),
        [sink] => {
            let Some(settings) = node.get(sink) else { return };
            let entry = serde_json::from_value::<SubscriptionEntry>(node.clone().into_json());
            // A value that does not fit the schema was reported already.
            let Ok(entry) = entry else { return };
            if let Some(Err(invalid)) = entry.template() {
                event_work::report(name, sink, settings, &invalid, faults);
            } else if let Err(why) = entry.destination(name, folder) {
                faults.add(
                    settings.span.start,
                    format!("{why:#}"),
                    "docs/SINKS.md documents the settings of each sink",
                );
            }
        }
        [.., last] => faults.add(
            node.get(last).map_or(*at, |node| node.span.start),
            format!("the subscription {name} has several sinks: {}", given.join(", ")),
            "keep one; use a separate subscription for each sink",
        ),
    }
}

fn check_filter(name: &str, node: &Node, faults: &mut Faults) {
    let Some(filter) = node.get("filter") else { return };
    if let Some(Err(invalid)) = filter.text().map(Condition::compile) {
        faults.add(
            filter.span.start,
            format!("the filter of the subscription {name} is invalid: {invalid}"),
            "write a condition such as \"event.type == 'order.placed' && event.payload.total > 100\" (docs/RELAY.md)",
        );
    }
}

/// A subscription has either emitted events or state changes, never both. Events of state changes are recognized by their aggregate type.
fn check_changes(name: &str, node: &Node, faults: &mut Faults) {
    for kind in node.get("aggregate_types").map(Node::nodes).unwrap_or_default() {
        if kind.text().is_some_and(|kind| kind.starts_with(RESERVED)) {
            faults.add(
                kind.span.start,
                format!("aggregate_types of the subscription {name} contains a type of state changes"),
                "write changes = { kinds = [\"mail\"] } instead, which also records them (docs/RELAY.md)",
            );
        }
    }
    let Some(node_of_changes) = node.get("changes") else { return };
    if let Some(types) = node.get("aggregate_types") {
        faults.add(
            types.span.start,
            format!("the subscription {name} has aggregate_types and changes"),
            "keep one: emitted events and state changes need two subscriptions",
        );
    }
    // A value that does not fit the schema was reported already.
    let Ok(entry) = serde_json::from_value::<ChangesEntry>(node_of_changes.clone().into_json()) else {
        return;
    };
    let changes = entry.changes();
    if changes.is_empty() {
        faults.add(
            node_of_changes.span.start,
            format!("changes of the subscription {name} has no kinds and no DAGs"),
            "add some, such as kinds = [\"mail\"] or dags = [\"settlement\"]",
        );
    } else if let Err(why) = changes.check() {
        faults.add(
            node_of_changes.span.start,
            why.to_string(),
            "use a kind of at most 187 bytes, a DAG of at most 185: their aggregate types begin with milepost.job. and milepost.batch.",
        );
    }
}
