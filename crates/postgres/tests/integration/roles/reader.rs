//! `milepost_reader`: reads everything except tokens and sessions, and writes nothing.

use super::*;

#[tokio::test]
async fn it_may_read_all_but_tokens_and_sessions_and_write_no_table() {
    let (database, owner) = with_roles().await;
    for table in tables(&owner).await {
        let expected: &[&str] =
            if ["access_token", "console_session", "console_sign_in"].contains(&table.as_str()) {
                &[]
            } else {
                &["select"]
            };
        assert_eq!(rights(&owner, "milepost_reader", &table).await, expected, "{table}");
    }
    may(&owner, "select milepost.enqueue('mail')").await;
    let reader = seen_by("milepost_reader", &database).await;
    reader.check_schema().await.unwrap();
    may(
        &reader,
        "select payload from milepost.job; select from milepost.attempt; select who from milepost.audit",
    )
    .await;
}

#[tokio::test]
async fn it_may_not_write_by_a_function_either() {
    let (database, owner) = with_roles().await;
    may(&owner, "select milepost.enqueue('mail')").await;
    let reader = seen_by("milepost_reader", &database).await;
    for refused in [
        "select milepost.enqueue('mail')",
        "select milepost.enqueue_many(array['mail'], array['{}']::jsonb[])",
        "select milepost.emit('order', '17', 'order.paid')",
        "select milepost.start_bulk('notify')",
        "select milepost.start_batch('settlement')",
        "select milepost.once('shop', gen_random_uuid())",
        "select milepost.receive('shop', 'order', '1', 1, gen_random_uuid(), 'order.paid')",
        "select milepost.cancel(id) from milepost.live",
        "select milepost.prune_audit(0, 100)",
        "select setval('milepost.group_slot_beyond', 1)",
        "delete from milepost.ended",
        "truncate milepost.ended",
        "select from milepost.live for update",
        "create table milepost.mine (id int)",
    ] {
        may_not(&reader, refused).await;
    }
}
