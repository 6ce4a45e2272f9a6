//! Alerts for subscriptions and for inboxes.

use milepost_core::alert::AlertRule;
use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::inbox::listing::ConsumerView;

use super::alert::{Alert, Details, LATE, argument, key, to_look_at};
use super::events;
use super::format::{between, cut, length, query, relative, several};
use super::page::Page;

pub(super) fn of_subscription(of: &SubscriptionView, page: &Page) -> Vec<Alert> {
    let mut alerts = Vec::new();
    if of.reseed_needed {
        let words = "Its positions were stored in another database, for example because a dump was restored. No event is published until `milepost events reseed`, after which some events are published again.";
        let title = format!("{} needs a reseed", of.name);
        alerts.push(alert(of, page, AlertRule::SubscriptionReseed, true, title, words.to_owned()));
    }
    alerts.extend(held(of, page));
    alerts.extend(delayed(of, page));
    if of.dead > 0 {
        let name = &of.name;
        let dead = several(of.dead.unsigned_abs(), "event was", "events were");
        let (title, words) = (format!("{dead} dead-lettered in {name}"), "Retry or drop them.".to_owned());
        let url = format!("/dead-letters?{}", query(&[("subscription", name)]));
        alerts.push(Alert {
            details: Details::at(url, format!("milepost events dead {}", argument(name))),
            actions: Vec::new(),
            ..alert(of, page, AlertRule::SubscriptionDead, false, title, words)
        });
    }
    alerts
}

/// Creates an alert that leads to the subscription, with the button that stops it.
fn alert(
    of: &SubscriptionView,
    page: &Page,
    rule: AlertRule,
    error: bool,
    title: String,
    words: String,
) -> Alert {
    let url = format!("/events?{}", query(&[("subscription", &of.name)]));
    Alert {
        key: key(rule, of.name.as_str()),
        error,
        title,
        words,
        details: Details::at(url, "milepost events subscriptions"),
        preview: None,
        actions: page.viewer.operates.then(|| events::stop(of, page)).into_iter().collect(),
        silence: None,
    }
}

/// Alerts for aggregates that wait.
fn held(of: &SubscriptionView, page: &Page) -> Vec<Alert> {
    let (name, mut alerts) = (&of.name, Vec::new());
    // A pause of the subscription would not help.
    let retry = || page.viewer.operates.then(|| events::retry_parked(of, page)).into_iter().collect();
    if of.halted_aggregates > 0 {
        let words = "Their first events failed too often. No event of these aggregates is published until an operator retries, edits or skips the first one.";
        let halted = several(of.halted_aggregates.unsigned_abs(), "aggregate is", "aggregates are");
        let title = format!("{halted} halted in {name}");
        let halted = alert(of, page, AlertRule::SubscriptionHalted, true, title, with_error(words, of));
        alerts.push(with_parked(Alert { actions: retry(), ..halted }));
    }
    let parked = (of.parked_aggregates - of.halted_aggregates).max(0);
    if parked > 0 {
        let words = "The sink refused an event. It is tried again later, and the following events of its aggregate wait, which the backlog does not count. Events of other aggregates are published.";
        let title =
            format!("{} parked in {name}", several(parked.unsigned_abs(), "aggregate is", "aggregates are"));
        let parked = alert(of, page, AlertRule::SubscriptionParked, false, title, with_error(words, of));
        alerts.push(with_parked(Alert { actions: retry(), ..parked }));
    }
    alerts
}

/// Alerts for a subscription whose events are not published in time.
fn delayed(of: &SubscriptionView, page: &Page) -> Vec<Alert> {
    let (name, mut alerts) = (&of.name, Vec::new());
    let lag = of.oldest_at.map(|at| between(at, page.now));
    let behind = several(of.backlog.unsigned_abs(), "event", "events");
    let down = of.down().and_then(|publisher| Some((publisher, publisher.down_since?)));
    if let Some((publisher, since)) = down {
        let why = publisher.down_why.as_deref().unwrap_or("no reason given");
        let words = format!("Since {}, {behind} behind: {}", relative(since, page.now), cut(why, 200));
        alerts.push(alert(
            of,
            page,
            AlertRule::SubscriptionDown,
            true,
            format!("The sink of {name} is down"),
            words,
        ));
    }
    if let Some(at) = of.paused_at {
        let why = of.paused_why.as_deref().unwrap_or("no reason given");
        alerts.push(alert(
            of,
            page,
            AlertRule::SubscriptionPaused,
            false,
            format!("Subscription {name} is paused"),
            format!("Since {}: {why}", relative(at, page.now)),
        ));
    } else if let Some(lag) = lag.filter(|lag| *lag > LATE && down.is_none()) {
        let nobody = if of.publishers.is_empty() { "; no relay publishes it" } else { "" };
        let words = format!("{behind} behind{nobody}");
        let title = format!("{name} lags by {}", length(lag));
        alerts.push(alert(of, page, AlertRule::SubscriptionLags, of.publishers.is_empty(), title, words));
    }
    alerts
}

/// Adds what the sink said about a parked aggregate.
fn with_error(words: &str, of: &SubscriptionView) -> String {
    let error = of.parked_why.as_ref().map(|why| format!(" The error of one: {}", cut(why, 200)));
    format!("{words}{}", error.unwrap_or_default())
}

/// Lets an alert lead to the parked aggregates of its subscription.
fn with_parked(alert: Alert) -> Alert {
    let details = Details::at(format!("{}#parked", alert.details.url), "milepost events parked");
    Alert { details, ..alert }
}

pub(super) fn of_consumer(of: &ConsumerView) -> Vec<Alert> {
    let name = &of.consumer.name;
    let url = format!("/dead-letters?{}", query(&[("consumer", name)]));
    let details = Details::at(url, format!("milepost inbox dead {}", argument(name)));
    let all = [
        (
            AlertRule::InboxWaiting,
            of.parked,
            ["event waits", "events wait"],
            "An earlier event is missing. If it does not arrive in time, the consumer's gap setting applies.",
        ),
        (
            AlertRule::InboxDead,
            of.dead,
            ["dead letter", "dead letters"],
            "Events arrived out of order, and missing events did not arrive in time.",
        ),
    ];
    let there = all.into_iter().filter(|(_, number, ..)| *number > 0);
    let alert = |(rule, number, [one, many], words): (AlertRule, u64, [&str; 2], &str)| {
        to_look_at(
            key(rule, name.as_str()),
            false,
            format!("{} in the inbox of {name}", several(number, one, many)),
            words,
            details.clone(),
        )
    };
    there.map(alert).collect()
}
