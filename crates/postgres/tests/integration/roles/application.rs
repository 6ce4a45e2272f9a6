//! `milepost_app`: enqueues work and receives events through functions, and changes nothing else.

use std::sync::Arc;

use milepost_core::batch::start::NewBatch;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::wait::Wait;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::finish::End;
use milepost_core::job::NewJob;
use milepost_core::port::{BatchStore, IntakeStore};
use milepost_core::state::JobState;
use milepost_testkit::scene::Scene;
use sqlx::PgConnection;

use super::*;

/// Creates the scene, and returns the store as its owner and as an application.
async fn scene() -> (Database, PostgresStore, PostgresStore) {
    let (database, owner) = with_roles().await;
    may(&owner, SCENE).await;
    for what in ["select milepost.switch_recording('kind')", "select milepost.switch_recording('dag')"] {
        may(&owner, what).await;
    }
    let app = seen_by("milepost_app", &database).await;
    app.check_schema().await.unwrap();
    (database, owner, app)
}

/// Runs each statement three times, because repeated calls find existing rows.
async fn may_again_and_again(app: &PostgresStore, statements: &[&'static str]) {
    for statement in statements {
        for _ in 0..3 {
            may(app, statement).await;
        }
    }
}

#[tokio::test]
async fn it_may_enqueue() {
    let (_database, owner, app) = scene().await;
    let statements = [
        "select milepost.enqueue('mail', '{}', key => 'order-7')",
        "select milepost.enqueue('mail', group_key => 'plain')",
        "select milepost.enqueue('mail', group_key => 't:1')",
        "select milepost.enqueue('mail', group_key => 'slots:1')",
        "select milepost.enqueue('mail', group_key => 't:1', run_at => now() + interval '1 hour')",
        "select milepost.enqueue_many(array['mail', 'mail'], array['{}', '{}']::jsonb[])",
    ];
    may_again_and_again(&app, &statements).await;
    assert_eq!(number(&owner, "select count(*) from milepost.history where verb = 'create'").await, 19);
    assert!(number(&owner, "select count(*) from milepost.event").await >= 19, "changes are emitted");
}

/// Operations that only workers and servers may use, and claims of an application that are not trusted.
#[tokio::test]
async fn it_may_not_take_the_places_of_ticks_or_of_mileposts_own_jobs() {
    let (_database, owner, app) = scene().await;
    for refused in [
        "select milepost.enqueue('mail', key => 'schedule/daily/2026-11-26T00:00:00Z')",
        "select milepost.enqueue('mail', group_key => 'milepost.operate')",
        "select milepost.enqueue('milepost.operate')",
        "select milepost.enqueue_many(array['mail'], array['{}']::jsonb[], nominal_ats => array[now()])",
        "set milepost.starts_bulk = 'on'; select milepost.enqueue('notify')",
        "select milepost.enqueue_many(array['mail'], array[to_jsonb(repeat('x', 2000000))], payload_bytes_max => null)",
        "select milepost.enqueue_many(array['mail'], array[to_jsonb(repeat('x', 2000000))], payload_bytes_max => 1000000000)",
        "select milepost.start_bulk('notify', key => 'schedule/daily/2026-11-26T00:00:00Z')",
    ] {
        is_refused(&app, refused, "MP001").await;
    }
    for refused in [
        "select milepost.start_batch('settlement', key => 'schedule/daily/2026-11-26T00:00:00Z')",
        "select milepost.start_batch('settlement', nominal_at => now(), nominal_zone => 'Not/AZone')",
        "select milepost.begin_batch('settlement', null, '{}', null, false, null, now(), null, 'Not/AZone')",
        "select milepost.begin_batch('settlement', null, '{}', null, false, null, now(), null, repeat('x', 2000000))",
    ] {
        is_refused(&app, refused, "MP011").await;
    }
    for large in [
        "select milepost.emit_many(array['order'], array['1'], array['paid'], array[to_json(repeat('x', 2000000))], payload_bytes_max => null)",
        "select milepost.emit_many(array['order'], array['1'], array['paid'], array[to_json(repeat('x', 2000000))], payload_bytes_max => 16777216)",
    ] {
        is_refused(&app, large, "MP015").await;
    }
    for refused in [
        "select milepost.receive('shop', 'order', '1', 2, gen_random_uuid(), 'paid', to_json(repeat('x', 17000000)))",
        "select milepost.receive('shop', 'order', '1', 2, gen_random_uuid(), 'paid', '{}', jsonb_build_object('a', repeat('x', 70000)))",
    ] {
        is_refused(&app, refused, "MP018").await;
    }
    assert_eq!(number(&owner, "select count(*) from milepost.job").await, 0);
    may(
        &owner,
        "select milepost.start_batch('settlement', nominal_at => now(), nominal_zone => 'Europe/Berlin')",
    )
    .await;
    let unknown =
        "select milepost.start_batch('settlement', nominal_at => now(), nominal_zone => 'Not/AZone')";
    is_refused(&owner, unknown, "MP011").await;
}

#[tokio::test]
async fn it_may_emit() {
    let (_database, owner, app) = scene().await;
    let statements = [
        "select milepost.emit('order', '17', 'order.paid')",
        "select milepost.emit('order', '18', 'order.paid', event_id => '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c')",
        "select milepost.emit_many(array['order', 'order'], array['19', '19'], array['order.paid', 'order.sent'])",
    ];
    may_again_and_again(&app, &statements).await;
    assert_eq!(number(&owner, "select count(*) from milepost.event").await, 10);
}

#[tokio::test]
async fn it_may_start_bulk_jobs_and_batches() {
    let (_database, owner, app) = scene().await;
    let statements = [
        "select milepost.start_bulk('notify', key => 'once')",
        "select milepost.start_batch('settlement', key => '2026-11-22')",
        "select milepost.start_batch('settlement')",
    ];
    may_again_and_again(&app, &statements).await;
    assert_eq!(number(&owner, "select count(*) from milepost.bulk").await, 1);
    assert_eq!(number(&owner, "select count(*) from milepost.batch").await, 4);
}

#[tokio::test]
async fn it_may_send_signals() {
    let (_database, owner, app) = scene().await;
    let dag =
        Dag::check(Definition::new("approval").task("ask", Task::wait(Wait::signal("approved")))).unwrap();
    owner.define_dag(&dag).await.unwrap();
    may(&app, "select milepost.start_batch('approval', key => 'k')").await;
    may_again_and_again(&app, &["select milepost.signal_by_key('approval', 'k', 'approved', id => '1')"])
        .await;
    may(&app, "select milepost.signal(b.id, 'approved') from milepost.batch b").await;
    assert_eq!(number(&owner, "select count(*) from milepost.batch_signal").await, 2);
}

#[tokio::test]
async fn it_may_take_events_in() {
    let (_database, owner, app) = scene().await;
    let statements = [
        "select milepost.receive('shop', 'order', '1', 1, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b21', 'order.paid')",
        "select milepost.once('shop', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b20')",
    ];
    may_again_and_again(&app, &statements).await;
    for once in [
        "select milepost.receive('shop', 'order', '1', 3, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b23', 'order.paid')",
        "select milepost.receive('shop', 'order', '1', 2, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b22', 'order.paid')",
        "select milepost.next_parked('shop', 'order', '1')",
        "select milepost.put_consumer('shop', gap_wait_ms => 0)",
        "select milepost.receive('shop', 'order', '1', 9, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b29', 'order.paid')",
        "select milepost.expect_from('shop', 'order', '2', 9)",
        "select milepost.inbox_ready('shop'), milepost.give_up_gaps('shop')",
    ] {
        may(&app, once).await;
    }
    assert_eq!(number(&owner, "select count(*) from milepost.inbox_dead").await, 1);
}

#[tokio::test]
async fn it_may_do_the_same_in_rust() {
    let (database, owner, app) = scene().await;
    let worked_out = Task::job("mail").payload(serde_json::json!({ "of": "${ input.day }" }));
    let dag = Dag::check(Definition::new("worked-out").task("a", worked_out)).unwrap();
    owner.define_dag(&dag).await.unwrap();
    let url = format!("{}?options=-c%20role%3Dmilepost_app", database.url());
    let mut connection = <PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    let mut tx = sqlx::Connection::begin(&mut connection).await.unwrap();
    let job = NewJob::new("mail", &()).unwrap();
    milepost_postgres::enqueue(&mut tx, &job).await.unwrap();
    let event = NewEvent::new(Aggregate::new("order", "1"), "order.paid", &()).unwrap();
    milepost_postgres::emit(&mut tx, &event).await.unwrap();
    assert!(milepost_postgres::once(&mut tx, "shop", event.id).await.unwrap());
    let batch = NewBatch::new("worked-out", &serde_json::json!({ "day": 1 })).unwrap();
    milepost_postgres::start_batch(&mut tx, &batch).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        number(&owner, "select count(*) from milepost.batch_task where state = 'due'").await,
        1,
        "a worker will create its job"
    );
    drop(app);
}

#[tokio::test]
async fn it_may_see_where_jobs_and_batches_stand() {
    let (_database, _owner, app) = scene().await;
    may(&app, "select milepost.enqueue('mail', key => '7'), milepost.start_batch('settlement')").await;
    may(
        &app,
        "select id, state, kind, queue from milepost.live; select job_id from milepost.job_key;
         select state from milepost.batch; select state, pre_cnt from milepost.batch_task;
         select name from milepost.dag; select version from milepost.dag_version; select key from milepost.dag_task;
         select name from milepost.bulk_definition",
    )
    .await;
}

#[tokio::test]
async fn it_may_not_read_payloads_results_inputs_events_inboxes_tokens_or_the_audit() {
    let (_database, owner, _app) = scene().await;
    let seen = [
        "batch",
        "batch_task",
        "bulk_definition",
        "dag",
        "dag_task",
        "dag_version",
        "job_key",
        "live",
        "schema_migration",
    ];
    for table in tables(&owner).await {
        let expected: &[&str] = if seen.contains(&table.as_str()) { &["select"] } else { &[] };
        assert_eq!(rights(&owner, "milepost_app", &table).await, expected, "{table}");
    }
}

/// Objects in a schema of the search path that PostgreSQL prefers to its own, since their types match exactly.
const TRAPS: &str = "
    create table public.loot (who text);
    grant insert on public.loot to public;
    create function public.trap() returns void language sql as 'insert into public.loot values (current_user)';
    create function public.pg_has_role(text, text, text) returns boolean language sql as 'select public.trap(); select pg_catalog.pg_has_role($1::name, $2::name, $3)';
    create function public.same(milepost.job_state, milepost.job_state) returns boolean language sql
        as 'select public.trap(); select $1::text operator(pg_catalog.=) $2::text';
    create operator public.= (leftarg = milepost.job_state, rightarg = milepost.job_state, function = public.same);";

#[tokio::test(flavor = "multi_thread")]
async fn what_it_puts_into_the_search_path_runs_neither_as_a_superuser_nor_as_a_worker() {
    let (database, owner) = with_roles().await;
    run(owner.pool(), "grant create on schema public to milepost_app").await.unwrap();
    let app = seen_by("milepost_app", &database).await;
    may(&app, TRAPS).await;
    run(owner.pool(), ROLES).await.unwrap();
    let worker = Arc::new(seen_by("milepost_worker", &database).await);
    let scene = Scene::on(worker).await;
    let job = scene.enqueue(Scene::job()).await;
    let claimed = scene.claim(1).await.remove(0);
    scene.finish(&claimed, End::Succeed { result: None }).await;
    assert_eq!(scene.state(job).await, JobState::Succeeded);
    assert_eq!(number(&owner, "select count(*) from public.loot").await, 0);
}

#[tokio::test]
async fn it_may_not_postpone_cancel_or_stop_anything() {
    let (_database, owner, app) = scene().await;
    may(&app, "select milepost.enqueue('mail'), milepost.start_batch('settlement')").await;
    for refused in [
        "select milepost.cancel(id) from milepost.live",
        "select milepost.change(id, 'skip') from milepost.live",
        "select milepost.change_job(id, 'snooze', null, 1000) from milepost.live",
        "select milepost.cancel_batch(id) from milepost.batch",
        "select milepost.abort_batch(id) from milepost.batch",
        "update milepost.live set ready_at = 'infinity'",
        "update milepost.live set state = 'blocked', due_at = 'infinity', ready_at = null",
        "update milepost.live set priority = 0",
        "delete from milepost.live",
        "select from milepost.live for update",
        "insert into milepost.queue (name, paused_at) values ('default', now())",
        "select milepost.put_group_limit('t:*', 0, null, null, null, 'operator')",
        "select milepost.retry_dead('{1}')",
        "select milepost.drop_dead('{1}')",
    ] {
        may_not(&app, refused).await;
    }
    assert_eq!(number(&owner, "select count(*) from milepost.live where ready_at <= now()").await, 2);
}

#[tokio::test]
async fn it_may_not_forge_what_happened() {
    let (_database, _owner, app) = scene().await;
    may(&app, "select milepost.enqueue('mail')").await;
    for refused in [
        "insert into milepost.history (job_id, token, attempt, verb, to_state) select id, 0, 0, 'cancel', 'canceled' from milepost.live",
        "insert into milepost.job (id, kind, queue, payload, priority, max_attempts, created_at)
         values (gen_random_uuid(), 'mail', 'default', '{}', 2, 1, now())",
        "insert into milepost.batch_history (batch_id, generation, verb, to_state) values (gen_random_uuid(), 1, 'create', 'running')",
        "insert into milepost.ended (id, ended_at, token, attempt, max_attempts, state) values (gen_random_uuid(), now(), 1, 1, 1, 'succeeded')",
        "update milepost.event set payload = '{}'",
        "delete from milepost.event",
        "update milepost.aggregate set last_seq = 0",
        "insert into milepost.audit (who, what, detail) values ('me', 'nothing', '{}')",
        "select milepost.note_letters('{\"{}\"}', 'inbox.drop', 'somebody')",
        "select milepost.switch_recording('kind')",
        "select milepost.prune_audit(0, 100)",
    ] {
        may_not(&app, refused).await;
    }
}

#[tokio::test]
async fn a_function_looks_nothing_up_where_its_caller_says() {
    let (_database, owner, app) = scene().await;
    may(&owner, "create schema theirs; grant all on schema theirs to milepost_app").await;
    // Would run with the owner's rights if names were looked up in the caller's schemas.
    may(
        &app,
        "create table theirs.stolen (as_whom text); grant all on theirs.stolen to public;
         create function theirs.octet_length(jsonb) returns int language plpgsql as $$
         begin insert into theirs.stolen values (current_user); return 1; end $$;
         create function theirs.octet_length(text) returns int language plpgsql as $$
         begin insert into theirs.stolen values (current_user); return 1; end $$;
         create function theirs.now() returns timestamptz language plpgsql as $$
         begin insert into theirs.stolen values (current_user); return pg_catalog.now(); end $$;
         create function theirs.cardinality(anyarray) returns int language plpgsql as $$
         begin insert into theirs.stolen values (current_user); return 1; end $$",
    )
    .await;
    may(
        &app,
        "set search_path = theirs, pg_catalog;
         select milepost.enqueue('mail', '{}', key => '1', group_key => 't:1');
         select milepost.emit('order', '1', 'order.paid', '{}');
         select milepost.start_bulk('notify');
         select milepost.start_batch('settlement', input => '{}');
         select milepost.receive('shop', 'order', '1', 2, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b21', 'order.paid');
         select milepost.give_up_gaps('shop');
         reset search_path",
    )
    .await;
    let stolen = number(&owner, "select count(*) from theirs.stolen where as_whom <> 'milepost_app'").await;
    assert_eq!(stolen, 0);
}

#[tokio::test]
async fn a_worker_runs_what_an_application_enqueued() {
    let (database, _owner, app) = scene().await;
    let worker: Arc<dyn Store> = Arc::new(seen_by("milepost_worker", &database).await);
    let scene = Scene::on(worker).await;
    let job = app.enqueue_many(&[Scene::job()]).await.unwrap()[0].job;
    let claimed = scene.claim(1).await.remove(0);
    scene.finish(&claimed, milepost_core::finish::End::Succeed { result: None }).await;
    assert_eq!(scene.view(job).await.row.state, JobState::Succeeded);
}
