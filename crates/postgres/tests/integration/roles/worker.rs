//! `milepost_worker`: runs all work, creates no tokens, and neither reads nor changes audit entries.

use milepost_testkit::wait;

use super::*;

/// A token whose hash belongs to no secret.
const TOKEN: &str = "insert into milepost.access_token (prefix, name, hash, role, created_by, starts_at)
    values ('abcd1234', 'ci', decode(repeat('00', 32), 'hex'), 'viewer', 'ada', now())";

async fn worker() -> (Database, PostgresStore, PostgresStore) {
    let (database, owner) = with_roles().await;
    let worker = seen_by("milepost_worker", &database).await;
    (database, owner, worker)
}

#[tokio::test]
async fn it_may_write_the_audit() {
    let (_database, owner, worker) = worker().await;
    may(&worker, "insert into milepost.audit (who, what, detail) values ('config', 'limit.put', '{}')").await;
    assert_eq!(number(&owner, "select count(*) from milepost.audit").await, 1);
}

#[tokio::test]
async fn it_may_ask_who_wants_its_numbers_and_note_that() {
    let (_database, _owner, worker) = worker().await;
    assert!(!worker.has_tokens().await.unwrap());
    assert!(worker.token("none").await.unwrap().is_none());
    worker.touch_token("none").await.unwrap();
}

#[tokio::test]
async fn it_may_neither_change_nor_lock_tokens() {
    let (_database, owner, worker) = worker().await;
    for refused in [
        "update milepost.access_token set last_used_at = 'infinity'",
        "select prefix from milepost.access_token for update",
        "select prefix from milepost.access_token for key share",
    ] {
        may_not(&worker, refused).await;
    }
    assert_eq!(rights(&owner, "milepost_worker", "access_token").await, ["select"]);
}

#[tokio::test]
async fn a_token_that_somebody_else_changes_does_not_keep_a_worker_waiting() {
    let (_database, owner, worker) = worker().await;
    may(&owner, TOKEN).await;
    let mut other = owner.pool().begin().await.unwrap();
    sqlx::query("select from milepost.access_token for update").execute(&mut *other).await.unwrap();
    tokio::time::timeout(wait::LIMIT, worker.touch_token("abcd1234")).await.expect("no wait").unwrap();
    let unused = "select count(*) from milepost.access_token where last_used_at is null";
    assert_eq!(number(&worker, unused).await, 1);
    other.rollback().await.unwrap();
    worker.touch_token("abcd1234").await.unwrap();
    assert_eq!(number(&worker, unused).await, 0);
}

#[tokio::test]
async fn it_may_not_hide_the_audit_behind_entries_that_nobody_can_read() {
    let (_database, _owner, worker) = worker().await;
    for refused in [
        "insert into milepost.audit (who, what, detail) values ('ada', 'x', (repeat('[', 3000) || repeat(']', 3000))::jsonb)",
        "insert into milepost.audit (who, what, detail) values ('ada', 'x', ('[1' || repeat('0', 400) || ']')::jsonb)",
        "insert into milepost.audit (who, what, detail) values ('ada', 'x', to_jsonb(repeat('x', 2000000)))",
        "insert into milepost.audit (who, what, detail) values (repeat('x', 2000000), 'x', '{}')",
        "insert into milepost.audit (who, what, subject, detail) values ('ada', 'x', repeat('x', 2000000), '{}')",
    ] {
        is_refused(&worker, refused, "23514").await;
    }
}

#[tokio::test]
async fn it_may_not_make_or_revoke_tokens_or_see_sessions() {
    let (_database, owner, worker) = worker().await;
    for refused in [
        "insert into milepost.access_token (prefix) values ('mine')",
        "delete from milepost.access_token",
        "update milepost.access_token set role = 'admin'",
        "update milepost.access_token set revoked_at = now()",
        "update milepost.access_token set hash = '\\x00'",
    ] {
        may_not(&worker, refused).await;
    }
    assert_eq!(rights(&owner, "milepost_worker", "console_session").await, Vec::<String>::new());
}

#[tokio::test]
async fn it_may_not_change_subscriptions_transitions_or_the_schema() {
    let (_database, owner, worker) = worker().await;
    for refused in [
        "update milepost.subscription set paused_at = now()",
        "update milepost.transition set to_state = 'succeeded'",
        "delete from milepost.schema_migration",
        "create table milepost.mine (id int)",
        "create or replace function milepost.wake() returns void language sql as ''",
        "truncate milepost.live",
        "select milepost.switch_recording('kind')",
        "alter table milepost.audit disable trigger all",
    ] {
        may_not(&worker, refused).await;
    }
    let read = [
        "alert_incident",
        "alert_notice",
        "alert_silence",
        "alert_target",
        "arrival",
        "arrival_part",
        "change_source",
        "dead_event",
        "parked_aggregate",
        "parked_event",
        "publisher",
        "schema_migration",
        "slot_position",
        "subscription",
        "subscription_slot",
        "transition",
    ];
    for table in tables(&owner).await {
        let expected: &[&str] = match table.as_str() {
            "audit" => &["insert"],
            "event_work" => &["delete", "select"],
            "access_token" => &["select"],
            "console_session" | "console_sign_in" => &[],
            "epoch" => &["insert", "select", "update"],
            "timeline" => &["insert", "select"],
            _ if read.contains(&table.as_str()) => &["select"],
            _ => &["delete", "insert", "select", "update"],
        };
        assert_eq!(rights(&owner, "milepost_worker", &table).await, expected, "{table}");
    }
}

async fn by_worker() -> (Database, Arc<dyn Store>) {
    shared("milepost_worker").await
}

mod runs {
    milepost_conformance::conformance! { crate::roles::worker::by_worker:
        fences {
            checkpoints_and_progress_are_kept_for_the_next_attempt
        }
        doctor {
            a_store_with_jobs_in_every_state_has_no_findings
        }
        groups {
            a_slot_is_handed_on_by_priority_then_due_time
        }
        pruners {
            workers_forget_what_is_over
        }
        rescue {
            a_dead_workers_jobs_are_taken_back
        }
        retention {
            a_key_goes_with_its_job_and_can_be_used_again
        }
        schedules {
            a_tick_makes_a_job_that_says_which_tick_it_is
        }
    }

    milepost_conformance::batch_conformance! { crate::roles::worker::by_worker:
        ends {
            a_diamond_runs_in_order
        }
        skips {
            a_false_condition_skips_what_follows_and_makes_no_job
        }
    }
}
