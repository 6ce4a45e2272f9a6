//! `milepost_server`: reads and writes everything except what only the migrator changes, and does not change audit entries.

use super::*;

#[tokio::test]
async fn it_may_read_and_write_all_tables() {
    let (_database, owner) = with_roles().await;
    for table in tables(&owner).await {
        let expected: &[&str] = match table.as_str() {
            "schema_migration" | "transition" | "arrival" | "arrival_part" => &["select"],
            "audit" => &["insert", "select"],
            "epoch" => &["insert", "select", "update"],
            "timeline" => &["insert", "select"],
            _ => &["delete", "insert", "select", "update"],
        };
        assert_eq!(rights(&owner, "milepost_server", &table).await, expected, "{table}");
    }
}

#[tokio::test]
async fn it_may_switch_the_recording_of_changes() {
    let (database, _owner) = with_roles().await;
    let server = seen_by("milepost_server", &database).await;
    may(&server, "select milepost.switch_recording('kind')").await;
    is_refused(&server, "select milepost.switch_recording('x')", "22023").await;
    is_refused(&server, "select milepost.switch_recording(null)", "22023").await;
}

#[tokio::test]
async fn it_may_not_change_the_schema_migrations_or_transitions() {
    let (database, _owner) = with_roles().await;
    let server = seen_by("milepost_server", &database).await;
    for refused in [
        "update milepost.transition set to_state = 'succeeded'",
        "delete from milepost.schema_migration",
        "create table milepost.mine (id int)",
        "create or replace function milepost.wake() returns void language sql as ''",
        "drop table milepost.live",
        "alter table milepost.history disable trigger all",
        "alter table milepost.audit disable trigger all",
        "truncate milepost.live",
    ] {
        may_not(&server, refused).await;
    }
}

async fn by_server() -> (Database, Arc<dyn Store>) {
    shared("milepost_server").await
}

mod serves {
    milepost_conformance::conformance! { crate::roles::server::by_server:
        admin {
            a_running_job_is_asked_to_stop_and_fenced_off_after_its_grace
        }
        audit {
            every_change_by_an_actor_leaves_one_row
        }
        changes {
            a_forgotten_job_leaves_its_events_and_no_damage
            each_subscription_gets_the_changes_that_it_wants
        }
        event_work {
            a_refused_work_leaves_nothing_of_its_call
            a_signal_of_an_event_ends_a_wait
            what_is_recorded_about_an_event_is_pruned_with_it
        }
        tokens {
            a_session_ends_with_its_token
            the_id_of_a_session_is_changed_once_and_the_old_one_counts_for_a_moment
        }
    }
}
