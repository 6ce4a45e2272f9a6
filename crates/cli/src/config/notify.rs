//! `[notify.NAME]`: targets that servers notify of alerts.

use anyhow::Result;
use milepost_cli_support::passwords::passwords;
use milepost_core::alert::{AlertRule, NoticeRules, Severity};
use milepost_http::{SecretUrl, WebhookSecret};
use milepost_notify::{Channel, ChannelConfig, InvalidChannel, Target};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{Entry, Node};
use super::fault::Faults;
use super::humane::Humane;
use super::kind;
use crate::nearest::nearest;

/// The keys of channels, of which a target has one.
const CHANNELS: &[&str] = &["webhook", "slack", "smtp"];
/// Keys that belong to one channel.
const KEYS_OF_CHANNELS: &[(&str, &str)] = &[("secrets", "webhook"), ("from", "smtp"), ("to", "smtp")];

/// Notifies a target of alerts: once when an alert begins, and once when it has ended ([guides/get-alerts.md](guides/get-alerts.md)).
/// `milepost serve` sends the messages; of several servers on a store, one sends each.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotifyEntry {
    /// A webhook: a signed HTTP request with a JSON document. `https://…`, or `http://…` only in networks of `allow_networks`.
    #[serde(default)]
    webhook: Option<SecretUrl>,
    /// The secrets that requests to the webhook are signed with, 1 to 10: `whsec_` and 24 to 64 bytes in base64.
    #[serde(default)]
    secrets: Vec<WebhookSecret>,
    /// An incoming webhook of Slack, or of a chat that accepts the same `{"text": …}`, such as Mattermost.
    #[serde(default)]
    slack: Option<SecretUrl>,
    /// The server for e-mail: `smtps://USER:PASSWORD@HOST`, `smtp://USER:PASSWORD@HOST` with STARTTLS, or `smtp://HOST?tls=none` in networks
    /// of `allow_networks`.
    #[serde(default)]
    smtp: Option<SecretUrl>,
    /// The sender of e-mail, such as `Milepost <milepost@example.com>`.
    #[serde(default)]
    from: Option<String>,
    /// The recipients of e-mail, 1 to 20.
    #[serde(default)]
    to: Vec<String>,
    /// Only alerts of these rules, such as `queue_paused`. The default is all.
    #[serde(default)]
    #[schemars(length(min = 1))]
    rules: Vec<String>,
    /// The least severity that is sent: `warning` (the default) or `error`.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["warning", "error"]))]
    min_severity: Option<Severity>,
    /// How long an alert must last before it is sent. The default is `1m`.
    #[serde(default)]
    r#for: Option<Humane>,
    /// The minimum time between two messages that the same alert has begun. The default is `30m`.
    #[serde(default)]
    repeat_after: Option<Humane>,
    /// Networks to which connections are allowed, besides the public internet, such as `10.0.0.0/8`. The default is none.
    #[serde(default)]
    allow_networks: Vec<String>,
    /// The address of the console, for a link in messages, such as `https://jobs.example.org`.
    #[serde(default)]
    console: Option<String>,
}

// URLs and secrets are never shown.
impl std::fmt::Debug for NotifyEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotifyEntry").finish_non_exhaustive()
    }
}

impl NotifyEntry {
    /// Returns the passwords in its URLs.
    pub(super) fn passwords(&self) -> Vec<String> {
        self.smtp.iter().flat_map(|url| passwords(url.expose())).collect()
    }

    /// Returns the target. It does not connect yet.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub(crate) fn target(&self, name: &str) -> Result<Target, InvalidChannel> {
        let channel = Channel::open(&self.channel(), &self.allow_networks)?;
        Ok(Target { rules: self.notice_rules(name), channel, console: self.console.clone() })
    }

    fn channel(&self) -> ChannelConfig {
        if let Some(url) = &self.webhook {
            return ChannelConfig::Webhook { url: url.clone(), secrets: self.secrets.clone() };
        }
        if let Some(url) = &self.slack {
            return ChannelConfig::Slack { url: url.clone() };
        }
        ChannelConfig::Mail {
            url: self.smtp.clone().unwrap_or_else(|| SecretUrl::from("")),
            from: self.from.clone().unwrap_or_default(),
            to: self.to.clone(),
        }
    }

    fn notice_rules(&self, name: &str) -> NoticeRules {
        NoticeRules {
            // Unknown rules were rejected before.
            rules: self.rules.iter().filter_map(|rule| rule.parse().ok()).collect(),
            min_severity: self.min_severity.unwrap_or(Severity::Warning),
            hold: self.r#for.map_or(NoticeRules::HOLD_DEFAULT, |time| time.0),
            repeat_after: self.repeat_after.map_or(NoticeRules::REPEAT_AFTER_DEFAULT, |time| time.0),
            ..NoticeRules::new(name)
        }
    }
}

pub(super) fn check(notify: Option<&Node>, faults: &mut Faults) {
    for entry in notify.map(Node::entries).unwrap_or_default() {
        check_one(entry, faults);
    }
}

fn check_one(Entry { key: name, at, node }: &Entry, faults: &mut Faults) {
    if let Err(why) = kind::check_name("target", name) {
        faults.add(*at, why, "give it a name of 1 to 200 bytes without control characters");
    }
    if !node.is_table() {
        return;
    }
    for rule in node.get("rules").map(Node::nodes).unwrap_or_default() {
        check_rule(rule, faults);
    }
    let given: Vec<&str> = CHANNELS.iter().copied().filter(|channel| node.get(channel).is_some()).collect();
    let [channel] = given[..] else {
        let (place, what) = match given.last() {
            None => (*at, format!("the target {name} has no channel")),
            Some(last) => {
                let place = node.get(last).map_or(*at, |node| node.span.start);
                (place, format!("the target {name} has several channels: {}", given.join(", ")))
            }
        };
        let remedy = "give it one of webhook, slack and smtp; use a separate target for each channel";
        return faults.add(place, what, remedy);
    };
    let misplaced = KEYS_OF_CHANNELS.iter().filter(|(_, of)| *of != channel);
    for (key, of) in misplaced {
        if let Some(node) = node.get(key) {
            let what = format!("{key} of the target {name} has no effect: it belongs to {of}");
            faults.add(node.span.start, what, format!("remove {key}"));
        }
    }
    // A value that does not fit the schema was reported already.
    let Ok(entry) = serde_json::from_value::<NotifyEntry>(node.clone().into_json()) else { return };
    if let Err(InvalidChannel { setting, why }) = entry.target(name) {
        let place = node.get(setting).or_else(|| node.get(channel)).map_or(*at, |node| node.span.start);
        let what = format!("{setting} of the target {name} cannot be used: {why}");
        faults.add(place, what, "guides/get-alerts.md shows a target of each channel");
    }
}

fn check_rule(node: &Node, faults: &mut Faults) {
    let Some(text) = node.text() else { return };
    if text.parse::<AlertRule>().is_err() {
        let names = AlertRule::names();
        let remedy = match nearest(text, &names) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("the rules are {}", names.join(", ")),
        };
        faults.add(node.span.start, format!("there is no rule {text:?} of alerts"), remedy);
    }
}
