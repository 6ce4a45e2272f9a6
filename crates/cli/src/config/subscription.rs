//! `[subscription.NAME]`: which events are published to which sink.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use milepost_core::event::{Begin, Changes, Exhausted, PageSize, RESERVED, Subscription, SubscriptionFilter};
use milepost_relay::publisher::PublisherOptions;
use milepost_relay::sink::{
    self, JsonlConfig, KafkaConfig, NatsConfig, NullConfig, RabbitmqConfig, RedisConfig, Sink, SinkConfig,
    WebhookConfig,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::backoff::{self, Backoff};
use super::document::{Entry, Node};
use super::fault::Faults;
use super::humane::Humane;
use super::{kind, worker};

/// The keys of the available sinks.
const SINKS: &[&str] = &["null", "jsonl", "nats", "redis", "rabbitmq", "kafka", "webhook"];

/// Events for a broker, in each aggregate's order (docs/RELAY.md): exactly one sink, and which events it gets. The subscription's position
/// in the log is kept under its name.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionEntry {
    /// Events of aggregates of these types. The default is all that are emitted.
    #[serde(default)]
    aggregate_types: Vec<String>,
    /// State changes of jobs and batches, instead of events that are emitted.
    #[serde(default)]
    changes: Option<ChangesEntry>,
    /// Events of these types. The default is all.
    #[serde(default)]
    event_types: Vec<String>,
    /// Where a subscription begins that is new: `beginning`, with the oldest event that there is (the default), or `now`.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["beginning", "now"]))]
    begin: Begin,
    /// How many events are read at once. The default is 5000.
    #[serde(default = "page_events_max_default")]
    #[schemars(range(min = 1, max = 100_000))]
    page_events_max: u32,
    /// How many MiB of payloads are read at once. The default is 16.
    #[serde(default = "page_mib_max_default")]
    #[schemars(range(min = 1, max = 1024))]
    page_mib_max: u32,
    /// How long events are gathered after a hint that there are some. The default is `0s`.
    #[serde(default)]
    linger: Option<Humane>,
    /// How long other publishers wait before they take the slots of one that is silent. The default is `10s`.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-duration-positive"))]
    lease: Option<Humane>,
    /// How many attempts an event gets, the first included. The default is 20.
    #[serde(default = "deliveries_max_default")]
    #[schemars(range(min = 1, max = 1_000_000))]
    deliveries_max: u32,
    /// How long an event that was not delivered waits before it is tried again. The default cap is `5m`.
    #[serde(default)]
    backoff: Option<Backoff>,
    /// What happens when the attempts of an event are spent: `halt` (the aggregate waits for a person; the default), `skip_event` or
    /// `dead_letter` (the next event goes on).
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["halt", "skip_event", "dead_letter"]))]
    exhausted: Exhausted,
    /// Nowhere: for measuring what comes before a sink.
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
    /// Kafka. Not in every build.
    #[serde(default)]
    kafka: Option<KafkaConfig>,
    /// A webhook.
    #[serde(default)]
    webhook: Option<WebhookConfig>,
}

/// Whose state changes a subscription gets.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesEntry {
    /// Those of jobs of these kinds; a bulk job's name is the kind of its jobs.
    #[serde(default)]
    kinds: Vec<String>,
    /// Those of batches of these DAGs.
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
    pub(crate) fn options(&self, name: &str, label: String) -> PublisherOptions {
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
        let default = PublisherOptions::new(subscription, label);
        PublisherOptions {
            begin: self.begin,
            page: PageSize {
                events_max: self.page_events_max as usize,
                bytes_max: self.page_mib_max as usize * 1024 * 1024,
            },
            linger: self.linger.map_or(Duration::ZERO, |time| time.0),
            lease: self.lease.map_or(default.lease, |time| time.0),
            ..default
        }
    }

    /// Returns its sink. It does not connect yet. Paths are relative to `folder`.
    pub(crate) fn sink(&self, name: &str, folder: &Path) -> Result<Arc<dyn Sink>> {
        let config = self.sink_config(folder).context("it has no sink")?;
        sink::open(&config).with_context(|| format!("the sink of the subscription {name}"))
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
    backoff::check(node.get("backoff"), faults);
    worker::check_lease(node.get("lease"), "10s", faults);
    check_changes(name, node, faults);
    let given: Vec<&str> = SINKS.iter().copied().filter(|sink| node.get(sink).is_some()).collect();
    match given[..] {
        [] => faults.add(
            *at,
            format!("the subscription {name} has no sink: its events would go nowhere"),
            format!(
                "add one of {}, such as jsonl = {{ path = \"events.jsonl\" }} (docs/SINKS.md)",
                SINKS.join(", ")
            ),
        ),
        [sink] => {
            let Some(settings) = node.get(sink) else { return };
            let entry = serde_json::from_value::<SubscriptionEntry>(node.clone().into_json());
            // A value that does not fit the schema was reported already.
            if let Ok(entry) = entry
                && let Err(why) = entry.sink(name, folder)
            {
                faults.add(
                    settings.span.start,
                    format!("{why:#}"),
                    "docs/SINKS.md has the settings of each sink",
                );
            }
        }
        [.., last] => faults.add(
            node.get(last).map_or(*at, |node| node.span.start),
            format!("the subscription {name} has several sinks: {}", given.join(", ")),
            "keep one; another sink is another subscription, with a position of its own",
        ),
    }
}

/// A subscription has either emitted events or state changes, never both. Events of state changes are recognized by their aggregate type.
fn check_changes(name: &str, node: &Node, faults: &mut Faults) {
    for kind in node.get("aggregate_types").map(Node::nodes).unwrap_or_default() {
        if kind.text().is_some_and(|kind| kind.starts_with(RESERVED)) {
            faults.add(
                kind.span.start,
                format!("aggregate_types of the subscription {name} names state changes"),
                "write changes = { kinds = [\"mail\"] } instead, which has them recorded (docs/RELAY.md)",
            );
        }
    }
    let Some(node_of_changes) = node.get("changes") else { return };
    if let Some(types) = node.get("aggregate_types") {
        faults.add(
            types.span.start,
            format!("the subscription {name} has aggregate_types and changes"),
            "keep one: what is emitted and what changes are two subscriptions",
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
            format!("changes of the subscription {name} names no kinds and no DAGs"),
            "name some, such as kinds = [\"mail\"] or dags = [\"settlement\"]",
        );
    } else if let Err(why) = changes.check() {
        faults.add(
            node_of_changes.span.start,
            why.to_string(),
            "a kind may have 187 bytes here, and a DAG 185: the types of their aggregates begin with milepost.job. and milepost.batch.",
        );
    }
}
