//! Tests of the audit log: entries are inserted, never updated, and deleted only by retention.

use std::time::Duration;

use milepost_core::retention::{AUDIT_MIN, Keep, Pace, RetentionPolicy};

use super::*;

/// An entry of today, and two that are old enough to be deleted.
const ENTRIES: &str = "
    insert into milepost.audit (at, who, what, subject, detail)
    values (now() - interval '721 hours', 'ada', 'queue.pause', 'old', '{}'),
           (now() - interval '722 hours', 'ada', 'queue.pause', 'older', '{}'),
           (now() - interval '719 hours', 'ada', 'queue.pause', 'young', '{}'),
           (now(), 'ada', 'queue.pause', 'new', '{}')";

/// Returns the remaining subjects, in the order in which they were written.
async fn subjects(owner: &PostgresStore) -> Vec<String> {
    sqlx::query_scalar("select subject from milepost.audit order by pos")
        .fetch_all(owner.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn neither_workers_nor_servers_may_change_or_delete_its_entries() {
    let (database, owner) = with_roles().await;
    may(&owner, ENTRIES).await;
    for role in ["milepost_worker", "milepost_server"] {
        let store = seen_by(role, &database).await;
        for refused in [
            "delete from milepost.audit",
            "delete from milepost.audit where at < now() - interval '1 year'",
            "update milepost.audit set who = 'nobody'",
            "update milepost.audit set why = 'it was not me'",
            "update milepost.audit set pos = default",
            "truncate milepost.audit",
            // Neither with another time nor with a position between others.
            "insert into milepost.audit (at, who, what, detail) values (now() - interval '1 year', 'ada', 'job.cancel', '{}')",
            "insert into milepost.audit (pos, who, what, detail) overriding system value values (1, 'ada', 'job.cancel', '{}')",
        ] {
            may_not(&store, refused).await;
        }
    }
    let worker = seen_by("milepost_worker", &database).await;
    for refused in [
        "select detail from milepost.audit",
        "select at from milepost.audit",
        "select count(*) from milepost.audit",
    ] {
        may_not(&worker, refused).await;
    }
    assert_eq!(subjects(&owner).await.len(), 4);
}

#[tokio::test]
async fn workers_and_servers_forget_what_is_old_of_it_and_nothing_young() {
    for role in ["milepost_worker", "milepost_server"] {
        let (database, owner) = with_roles().await;
        may(&owner, ENTRIES).await;
        let store = seen_by(role, &database).await;
        may(&store, "select milepost.prune_audit(0, 1)").await;
        assert_eq!(subjects(&owner).await, ["older", "young", "new"], "one at a time, by position");
        may(&store, "select milepost.prune_audit(-1000000000000, 100)").await;
        assert_eq!(subjects(&owner).await, ["young", "new"], "{role}: the minimum applies");
        may(&store, "select milepost.prune_audit(null, 100)").await;
        assert_eq!(subjects(&owner).await, ["young", "new"]);
    }
}

#[tokio::test]
async fn the_retention_of_a_worker_forgets_what_is_old_of_it() {
    let (database, owner) = with_roles().await;
    may(&owner, ENTRIES).await;
    let worker = seen_by("milepost_worker", &database).await;
    let policy = RetentionPolicy { audit: Keep::For(AUDIT_MIN), ..RetentionPolicy::FOREVER };
    let pruned = milepost_core::port::MaintenanceStore::prune(&worker, &policy, Pace { limit: 100, rest: 0 })
        .await
        .unwrap();
    assert_eq!((pruned.what.audit, pruned.rows), (2, 2));
    assert_eq!(subjects(&owner).await, ["young", "new"]);
}

#[tokio::test]
async fn a_right_that_was_granted_by_mistake_deletes_nothing_young_and_changes_nothing() {
    let (database, owner) = with_roles().await;
    may(&owner, ENTRIES).await;
    may(&owner, "grant all on milepost.audit to milepost_worker, milepost_server").await;
    for role in ["milepost_worker", "milepost_server", "milepost_migrator"] {
        let store = seen_by(role, &database).await;
        may_not(&store, "delete from milepost.audit").await;
        may_not(&store, "update milepost.audit set who = 'nobody'").await;
        may_not(&store, "update milepost.audit set at = at - interval '1 year'").await;
    }
    // Not even the owner may do this before it disables the trigger.
    may_not(&owner, "delete from milepost.audit where subject = 'young'").await;
    may_not(&owner, "truncate milepost.audit").await;
    may(&owner, "delete from milepost.audit where subject = 'old'").await;
    assert_eq!(subjects(&owner).await, ["older", "young", "new"]);
    may(&owner, "alter table milepost.audit disable trigger kept; delete from milepost.audit").await;
}

#[tokio::test]
async fn the_age_that_the_trigger_asks_for_is_the_librarys() {
    let (_database, owner) = with_roles().await;
    let seconds = number(&owner, "select extract(epoch from milepost.audit_age_min())::bigint").await;
    assert_eq!(Duration::from_secs(seconds.unsigned_abs()), AUDIT_MIN);
}
