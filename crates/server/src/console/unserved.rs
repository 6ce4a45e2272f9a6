//! Alerts for waiting jobs without a worker.

use std::cmp::Reverse;

use milepost_core::alert::AlertRule;
use milepost_core::listing::QueueKinds;

use super::alert::{Alert, CAUSES_MAX, Details, key, to_look_at};
use super::alert_facts::Facts;
use super::format::several;

/// A queue, one of its kinds, and the number of due jobs.
type UnservedKind<'a> = (&'a QueueKinds, &'a str, i64);

impl Facts {
    /// Alerts for queues that no worker serves, and for kinds in served queues without a handler.
    pub(super) fn unserved(&self) -> Vec<Alert> {
        let queues = self.queues.iter().flatten();
        let waits = queues.filter(|queue| queue.paused_at.is_none() && queue.waiting() > 0);
        let (served, others): (Vec<&QueueKinds>, Vec<&QueueKinds>) =
            waits.partition(|queue| self.alive().any(|worker| worker.queues.contains(&queue.name)));
        let mut kinds: Vec<UnservedKind<'_>> =
            served.into_iter().flat_map(|queue| self.unserved_kinds(queue)).collect();
        kinds.sort_by_key(|(.., jobs)| Reverse(*jobs));
        let more = kinds.split_off(kinds.len().min(CAUSES_MAX));
        let more = (!more.is_empty()).then(|| {
            let kinds = several(more.len() as u64, "more kind", "more kinds");
            let words = "Their jobs are due, but no active worker of their queues has a handler for them.";
            let title = format!("No handler for {kinds}");
            to_look_at(key(AlertRule::KindUnserved, "more"), true, title, words, Details::of_queues())
        });
        let others = others.into_iter().map(of_queue);
        others.chain(kinds.into_iter().map(of_kind)).chain(more).collect()
    }

    /// Returns the kinds of a queue that have due jobs but no handler on any of its workers.
    fn unserved_kinds<'a>(&'a self, queue: &'a QueueKinds) -> Vec<UnservedKind<'a>> {
        let has_handler = |kind: &str| self.alive().any(|worker| worker.serves(&queue.name, kind));
        queue
            .due_by_kind()
            .into_iter()
            .filter(|(kind, due)| *due > 0 && !has_handler(kind))
            .map(|(kind, due)| (queue, kind, due))
            .collect()
    }
}

fn of_queue(queue: &QueueKinds) -> Alert {
    Alert {
        key: key(AlertRule::QueueUnserved, queue.name.as_str()),
        error: true,
        title: format!("No worker serves queue {}", queue.name),
        words: format!(
            "{}, but no active worker serves the queue. Start one, or find out why the last one ended.",
            several(queue.waiting().unsigned_abs(), "job waits", "jobs wait")
        ),
        details: Details::of_workers(),
        // A pause would only hide that no worker serves it.
        preview: None,
        actions: Vec::new(),
        silence: None,
    }
}

fn of_kind((queue, kind, due): UnservedKind<'_>) -> Alert {
    let words = format!(
        "{} in queue {}, but no active worker of the queue has a handler for the kind. Start one that has, or find the deployment that removed it.",
        several(due.unsigned_abs(), "job waits", "jobs wait"),
        queue.name
    );
    let key = key(AlertRule::KindUnserved, format!("{kind} in {}", queue.name));
    to_look_at(key, true, format!("No handler for kind {kind}"), &words, Details::of_kind(kind))
}
