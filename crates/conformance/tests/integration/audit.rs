//! Retention of audit entries, on both stores.

use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::audit::acting;
use milepost_core::audit::AuditFilter;
use milepost_core::port::Store;
use milepost_core::retention::{AUDIT_MIN, Keep, Pace, Pruned, RetentionPolicy};
use milepost_testkit::home::Home;

async fn home(home: impl Home + 'static) -> Arc<dyn Home> {
    Arc::new(home)
}

milepost_testkit::on_each_home! { super::home =>
    old_entries_are_forgotten,
    young_entries_are_never_forgotten,
}

const fn keep(audit: Keep) -> RetentionPolicy {
    RetentionPolicy { audit, ..RetentionPolicy::FOREVER }
}

/// Prunes until a call has deleted rows or none are left: on a busy machine, the time limit of a call may expire before it deletes anything.
async fn prune(store: &dyn Store, policy: &RetentionPolicy) -> Pruned {
    loop {
        let pruned = store.prune(policy, Pace { limit: 2, rest: 0 }).await.unwrap();
        if pruned.rows > 0 || !pruned.more {
            return pruned;
        }
    }
}

/// Adds entries of this age, one for each subject.
async fn aged(home: &dyn Home, age: Duration, subjects: &[&str]) {
    for subject in subjects {
        let insert = format!(
            "insert into milepost.audit ({}, who, what, subject, detail) values ({}, 'ada', 'queue.pause', '{subject}', '{{}}')",
            home.time("at"),
            home.ago(age)
        );
        home.tamper(&insert).await;
    }
}

async fn subjects(home: &dyn Home) -> Vec<String> {
    let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
    let log = home.store().audit_log(&filter).await.unwrap();
    log.into_iter().filter_map(|entry| entry.subject).collect()
}

async fn old_entries_are_forgotten(home: Arc<dyn Home>) {
    aged(home.as_ref(), Duration::from_hours(24 * 40), &["a", "b", "c"]).await;
    let store = home.store();
    assert_eq!(prune(store.as_ref(), &keep(Keep::days(41))).await.rows, 0);
    let policy = keep(Keep::days(39));
    assert_eq!(store.prunable(&policy).await.unwrap().audit, 3);
    let pruned = prune(store.as_ref(), &policy).await;
    assert_eq!((pruned.what.audit, pruned.rows, pruned.more), (2, 2, true));
    assert_eq!(subjects(home.as_ref()).await, ["c"], "the oldest entries are deleted first");
    assert_eq!(prune(store.as_ref(), &policy).await.what.audit, 1);
}

async fn young_entries_are_never_forgotten(home: Arc<dyn Home>) {
    let hour = Duration::from_hours(1);
    aged(home.as_ref(), AUDIT_MIN + hour, &["old"]).await;
    aged(home.as_ref(), AUDIT_MIN - hour, &["young"]).await;
    let store = home.store();
    acting(&store).pause_queue("new", true).await.unwrap();
    let too_short = keep(Keep::For(AUDIT_MIN - hour * 2));
    let refused = store.prune(&too_short, Pace { limit: 2, rest: 0 }).await.unwrap_err();
    assert!(refused.to_string().contains("30 days or longer"), "{refused}");
    let shortest = keep(Keep::For(AUDIT_MIN));
    assert_eq!(store.prunable(&shortest).await.unwrap().audit, 1);
    assert_eq!(prune(store.as_ref(), &shortest).await.what.audit, 1);
    assert_eq!(prune(store.as_ref(), &shortest).await.rows, 0);
    assert_eq!(subjects(home.as_ref()).await, ["new", "young"]);
}
