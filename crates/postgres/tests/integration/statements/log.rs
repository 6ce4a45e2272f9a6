//! Plans of the statements of publishers, and of the listings of events that they could not publish.

use milepost_testkit::database::Database;
use sqlx::{Connection, Executor, PgConnection};

use crate::statements::{count, explain, statement_named};

/// Many orders in all slots, some of them parked for a subscription, and an active publisher.
const LOG: &str = "
    select milepost.emit_many(array_fill('order'::text, array[3000]), (select array_agg((n % 300)::text) from generate_series(1, 3000) n),
        array_fill('t'::text, array[3000]), array_fill('{}'::json, array[3000]));
    select milepost.subscribe('s', false);
    select milepost.hold_slots('s', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c', 'here:1', 600000);
    insert into milepost.parked_aggregate (subscription, aggregate_type, aggregate_id, slot, deliveries, next_delivery_at, why)
    select 's', aggregate_type, aggregate_id, slot, 1, now(), 'w' from milepost.aggregate;
    insert into milepost.parked_event (subscription, aggregate_type, aggregate_id, pos, slot, event_id)
    select 's', aggregate_type, aggregate_id, pos, slot, event_id from milepost.event;";

/// Statements of publishers, as prepared statements.
const PUBLISHING: &[(&str, &str)] = &[
    (
        "relay/page",
        "'{1,2}', '{1:1:,1:1:}', '{null,null}', '{0,0}', '{0,0}', '{50,50}', null, null, 100, null",
    ),
    ("relay/due", "'s', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c', 10, 100, 5000"),
    ("relay/payloads", "'{1,2}', '{1,2}', 1000"),
    ("relay/next_due", "'s', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c'"),
    ("relay/parked_of", "'s', '{1,2}'"),
];

/// Operations of publishers by functions.
const ADVANCING: &[&str] = &[
    "select * from milepost.hold_slots('s', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c', 'here:1', 600000)",
    "select * from milepost.advance_slots('s', '{1}', '{1}', array(select n from milepost.slot_position where slot = 1), '{1:1:}', '{0}', array[pg_current_snapshot()::text], '{9}', '{9}',
         (select jsonb_agg(jsonb_build_object('slot', slot, 'pos', pos, 'id', event_id, 'type', aggregate_type, 'aggregate', aggregate_id,
                                              'deliveries', 1, 'wait_ms', 1, 'why', 'w'))
          from (select * from milepost.event where slot = 1 order by pos limit 1) e), null, null, milepost.current_epoch())",
    "select milepost.settle_parked('s', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c', a.slot, 1, a.aggregate_type, a.aggregate_id, '{}', '[]', 2, 1, 'w', a.next_delivery_at)
     from (select * from milepost.parked_aggregate order by subscription, aggregate_type, aggregate_id limit 1) a",
    "select milepost.prune_log(600000)",
    "select milepost.prune_log(0)",
];

#[tokio::test]
async fn publishers_do_not_scan_the_log_whatever_the_statistics_say() {
    for analyzed_empty in [true, false] {
        let (database, _store) = Database::with_store().await;
        let mut connection = PgConnection::connect(&database.url()).await.unwrap();
        let analyze = "analyze milepost.event, milepost.parked_aggregate, milepost.parked_event, milepost.subscription_slot, milepost.slot_position";
        if analyzed_empty {
            connection.execute(analyze).await.unwrap();
        }
        connection.execute(LOG).await.unwrap();
        if !analyzed_empty {
            connection.execute(analyze).await.unwrap();
        }
        connection.execute(statement_named("pin_plans")).await.unwrap();
        for (name, arguments) in PUBLISHING {
            let plan = explain(&mut connection, name, arguments).await.join("\n");
            assert!(!plan.contains("Seq Scan on"), "{name}, analyzed empty: {analyzed_empty}\n{plan}");
        }
        // A new session, which has not counted any scans yet.
        let mut session = PgConnection::connect(&database.url()).await.unwrap();
        session.execute(statement_named("pin_plans")).await.unwrap();
        let mut tx = session.begin().await.unwrap();
        for verb in ADVANCING {
            tx.execute(*verb).await.unwrap();
        }
        let scans = "select coalesce(sum(seq_scan), 0)::bigint from pg_stat_xact_user_tables
                     where schemaname = 'milepost' and relname in ('event', 'parked_event', 'parked_aggregate', 'dead_event',
                                                                'slot_position')";
        assert_eq!(count(&mut tx, scans).await, 0, "publishers scan; analyzed empty: {analyzed_empty}");
        tx.rollback().await.unwrap();
    }
}

/// Listings for operators: pages in order.
const LISTS: &[(&str, &str)] =
    &[("relay/parked", "null, null, '', '', '', 100"), ("relay/dead", "'s', null, null, '', 100")];

#[tokio::test]
async fn pages_of_what_is_parked_and_given_up_are_read_off_an_index() {
    let (database, _store) = Database::with_store().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    connection.execute(LOG).await.unwrap();
    connection.execute(statement_named("pin_plans")).await.unwrap();
    for (name, arguments) in LISTS {
        let plan = explain(&mut connection, name, arguments).await.join("\n");
        assert!(!plan.contains("Sort") && !plan.contains("Seq Scan on"), "{name}\n{plan}");
    }
}
