//! Plans of the statements of consumers and their maintenance.

use milepost_testkit::database::Database;
use sqlx::{Connection, Executor, PgConnection};

use crate::statements::count;

/// Many aggregates of a consumer, some with waiting events, dead letters or a next event that is ready, and processed
/// events.
const INBOX: &str = "
    insert into milepost.processed_event (consumer, event_id) select 'c', gen_random_uuid() from generate_series(1, 3000);
    insert into milepost.aggregate_checkpoint (consumer, aggregate_type, aggregate_id, last_seq, parked, gives_up_at)
    select 'c', 'order', n::text, 1, (n % 10 = 0)::int, case when n % 10 = 0 then now() end from generate_series(1, 3000) n;
    insert into milepost.inbox_parked (consumer, aggregate_type, aggregate_id, aggregate_seq, event_id, event_type, payload, emitted_at)
    select 'c', 'order', n::text, 3, gen_random_uuid(), 't', '{}', now() from generate_series(10, 3000, 10) n;
    insert into milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, payload)
    select 'c', 'invoice', n::text, 3, 3, 'late', 'w', gen_random_uuid(), 't', '{}' from generate_series(1, 3000) n;";

/// All operations of consumers and their maintenance.
const TAKING: &[&str] = &[
    "select milepost.once('c', gen_random_uuid())",
    "select milepost.once('c', event_id) from (select event_id from milepost.processed_event order by consumer, event_id limit 1) e",
    "select verdict from milepost.receive('c', 'order', '1', 2, gen_random_uuid(), 't')",
    "select verdict from milepost.receive('c', 'order', '1', 2, gen_random_uuid(), 't')",
    "select verdict from milepost.receive('c', 'order', '1', 4, gen_random_uuid(), 't')",
    "select verdict from milepost.receive('c', 'order', '10', 2, gen_random_uuid(), 't')",
    "select * from milepost.next_parked('c', 'order', '10')",
    "select * from milepost.next_parked('c', 'order', '10')",
    "select milepost.expect_from('c', 'order', '20', 3)",
    "select * from milepost.inbox_ready('c')",
    "select * from milepost.give_up_gaps('c', 100)",
    "select milepost.put_consumer('c', gap_policy => 'skip_gap')",
    "select * from milepost.give_up_gaps(null, 100)",
    "select milepost.retry_dead(array(select pos from milepost.inbox_dead where reason = 'gap' order by pos limit 3))",
    "select milepost.drop_dead(array(select pos from milepost.inbox_dead where reason = 'gap' order by pos limit 3))",
];

#[tokio::test]
async fn inboxes_do_not_scan_whatever_the_statistics_say() {
    for analyzed_empty in [true, false] {
        let (database, _store) = Database::with_store().await;
        let mut connection = PgConnection::connect(&database.url()).await.unwrap();
        // Subqueries that compute the arguments above must not scan either.
        connection.execute("set enable_seqscan = off").await.unwrap();
        let analyze = "analyze milepost.processed_event, milepost.aggregate_checkpoint, milepost.inbox_parked, milepost.inbox_dead";
        if analyzed_empty {
            connection.execute(analyze).await.unwrap();
        }
        connection.execute(INBOX).await.unwrap();
        if !analyzed_empty {
            connection.execute(analyze).await.unwrap();
        }
        connection.execute("reset enable_seqscan").await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        for verb in TAKING {
            tx.execute(*verb).await.unwrap();
        }
        let scans = "select coalesce(sum(seq_scan), 0)::bigint from pg_stat_xact_user_tables
                     where schemaname = 'milepost' and relname in ('processed_event', 'aggregate_checkpoint', 'inbox_parked')";
        assert_eq!(count(&mut tx, scans).await, 0, "inboxes scan; analyzed empty: {analyzed_empty}");
        tx.rollback().await.unwrap();
    }
}
