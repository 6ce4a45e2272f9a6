//! Tests of a database that is set to commit without waiting for the disk: changes that a store makes are durable all the same.

use std::sync::Arc;

use jiff::Timestamp;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::settings::Settings;
use milepost_core::event::relay_listing::Replay;
use milepost_core::event::{Aggregate, Begin};
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::schedule::Source;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_testkit::database::Database;
use sqlx::{Connection, Executor, PgConnection};

use crate::settings::set;

/// Refuses every change of Milepost's tables that a crash of the server could undo after its commit.
const WATCH: &str = "
    create function public.refuse_if_not_durable() returns trigger language plpgsql as $$
    begin
        if current_setting('synchronous_commit') = 'off' then
            raise exception 'a change of % would not be durable', tg_table_name;
        end if;
        return null;
    end $$;
    do $$
    declare
        name text;
    begin
        for name in select tablename from pg_tables where schemaname = 'milepost' loop
            execute format('create trigger watched after insert or update or delete on milepost.%I
                            for each statement execute function public.refuse_if_not_durable()', name);
        end loop;
    end $$";

async fn watched(wake: WakeMode) -> (Database, Arc<dyn Store>) {
    let (database, _store) = Database::with_store().await;
    PgConnection::connect(&database.url()).await.unwrap().execute(WATCH).await.unwrap();
    set(&database, "synchronous_commit = off").await;
    let options = PostgresOptions { wake, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.unwrap();
    (database, Arc::new(store))
}

async fn directly() -> (Database, Arc<dyn Store>) {
    watched(WakeMode::Listen).await
}

async fn behind_a_pooler() -> (Database, Arc<dyn Store>) {
    watched(WakeMode::Poll).await
}

/// Makes a test for both ways to connect from each of these functions of the conformance suite.
macro_rules! durable {
    ($macro:ident: $($topics:tt)+) => {
        mod direct {
            milepost_conformance::$macro! { crate::durable::directly: $($topics)+ }
        }
        mod pooled {
            milepost_conformance::$macro! { crate::durable::behind_a_pooler: $($topics)+ }
        }
    };
}

mod jobs {
    durable! { conformance:
        audit {
            every_change_by_an_actor_leaves_one_row
            each_action_on_a_job_leaves_a_row_even_if_its_state_stays
        }
        doctor {
            a_repair_of_a_sound_store_changes_nothing
        }
        limits {
            a_raised_limit_fills_at_once_and_a_lowered_one_drains
        }
        rescue {
            a_dead_workers_jobs_are_taken_back
        }
        retention {
            a_key_goes_with_its_job_and_can_be_used_again
        }
        schedules {
            a_paused_schedule_does_not_tick_and_goes_on_from_now
        }
        tokens {
            a_revoked_token_stays_known_and_leaves_its_name
            a_session_is_its_tokens_until_it_is_ended
        }
    }
}

mod batches {
    durable! { batch_conformance:
        operations {
            an_abort_stops_everything_and_a_resume_goes_on
            a_cancel_ends_all_but_what_it_does_not_name
        }
    }
}

#[tokio::test]
async fn what_operators_do_to_subscriptions_consumers_and_bulk_jobs_is_durable() {
    for wake in [WakeMode::Listen, WakeMode::Poll] {
        let (_database, store) = watched(wake).await;
        store.subscribe("bus", Begin::Beginning).await.unwrap();
        store.pause_subscription("bus", "maintenance").await.unwrap();
        store.resume_subscription("bus").await.unwrap();
        store.replay("bus", &Replay::Since(Timestamp::UNIX_EPOCH)).await.unwrap();
        store.reseed().await.unwrap();
        store.expect_from("shop", &Aggregate::new("order", "17"), 5).await.unwrap();
        store.remove_subscription("bus").await.unwrap();
        let bulk = Definition::new("letters");
        store.put_bulk(&bulk, Source::Operator).await.unwrap();
        let run = NewJob::new("letters", &serde_json::json!({})).unwrap();
        let run = store.start_bulk(&bulk.direct(run)).await.unwrap().job;
        store.set_bulk(run, &Settings { duty: Some(0.5), ..Settings::default() }.into()).await.unwrap();
    }
}
