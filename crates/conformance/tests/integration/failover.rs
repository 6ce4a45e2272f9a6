//! Standbys that are promoted, and commits that no standby has.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::actions::job::{ActionError, Inputs, JobAction};
use milepost_core::audit::Actor;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::batch::start::NewBatch;
use milepost_core::claim::ClaimedJob;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::doctor::Check;
use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate, Target};
use milepost_core::port::{DoctorStore, MaintenanceStore, Operation, ScheduleStore, Store};
use milepost_core::schedule::{Made, Schedule, Source, Spec};
use milepost_core::token::{NewToken, RANDOM_BYTES, Role, Secret};
use milepost_core::transition::Verb;
use milepost_core::worker::Report;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::examine::look;
use milepost_testkit::lonely::Lonely;
use milepost_testkit::scene::KIND;
use milepost_testkit::server::Server;
use milepost_testkit::{Scene, database, wait};
use sqlx::{Connection, Executor, PgConnection};

pub(crate) const DONE: End = End::Succeed { result: None };

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_one_standby_ends_no_run_of_another_that_began_the_same_timeline() {
    let server = Server::create().await;
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    scene.enqueue(Scene::job()).await;
    server.stop().await;
    server.copy_files();
    let claimed = || async { scene.claim_for(scene.worker, 1).await.is_ok_and(|jobs| !jobs.is_empty()) };
    let mut runs = Vec::new();
    for _standby in [1, 2] {
        server.put_files_back();
        server.start_promoted().await;
        wait::until("the job is claimed", claimed).await;
        runs.push(scene.store.held(scene.worker).await.unwrap().remove(0));
        server.crash().await;
    }
    server.start().await;
    let answered = || async { scene.store.clock().await.is_ok() };
    wait::until("the server answers", answered).await;
    assert!(runs.iter().all(|held| held.run.token.0 > 100_000), "{runs:?}");
    let completed = async |held: &ClaimedJob| -> bool {
        let complete = sqlx::query_scalar("select milepost.complete($1, $2)");
        let complete = complete.bind(held.run.job.0).bind(held.run.token.0);
        complete.fetch_one(&mut PgConnection::connect(&server.url()).await.unwrap()).await.unwrap()
    };
    assert_eq!(scene.finish(&runs[0], DONE).await, Finished::Fenced);
    assert!(!completed(&runs[0]).await);
    assert!(completed(&runs[1]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_worker_of_a_new_server_gets_no_token_of_the_old_one() {
    let (_database, store) = database::Database::with_store().await;
    let old = "update milepost.timeline set server = server + 1;
               update milepost.epoch set id = 'f' || substr(id, 2) where id not like 'f%';
               insert into milepost.timeline (server, id) select server, 5 from milepost.timeline";
    store.pool().execute(old).await.unwrap();
    let scene = Scene::on(Arc::new(store)).await;
    let running = scene.running(Scene::job()).await;
    assert!(running.run.token.0 > 500_000, "{running:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_is_noticed_once_and_found_by_the_doctor_for_a_week() {
    let server = Server::create().await;
    let store = database::open(&server.url()).await;
    assert_eq!(store.notice_promotion().await.unwrap(), None);
    server.stop().await;
    server.copy_files();
    server.put_files_back();
    server.start_promoted().await;
    wait::until("the server answers", || async { store.clock().await.is_ok() }).await;
    let found = async || store.examine(Check::Promoted, &look()).await.unwrap();
    let is_found = async || {
        let finding = found().await.expect("found");
        let [example] = &*finding.examples else { panic!("{finding:?}") };
        assert_eq!(example.what, "timeline 2");
        assert!(example.detail.contains("; replication is asynchronous"), "{finding:?}");
    };
    is_found().await;
    assert_eq!(store.notice_promotion().await.unwrap(), Some(2));
    assert_eq!(store.notice_promotion().await.unwrap(), None);
    is_found().await;
    let pool = store.pool();
    sqlx::query("update milepost.timeline set seen_at = seen_at - interval '8 days'")
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(found().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_can_be_examined() {
    let server = Server::create().await;
    let _store = database::open(&server.url()).await;
    let standby = server.standby(&std::env::temp_dir()).await;
    let store = PostgresStore::connect(&standby.url(), PostgresOptions::default()).await.unwrap();
    wait::until("the standby has the tables", || async { store.check_schema().await.is_ok() }).await;
    for check in store.checks() {
        let found = store.examine(check, &look()).await;
        found.unwrap_or_else(|error| panic!("{check} on a standby: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_tokens_and_promotions_of_a_new_server_follow_those_of_the_old_one() {
    let (_database, store) = database::Database::with_store().await;
    // As pg_upgrade and the restore of a dump leave the table: the old server had been promoted four times.
    let old = "update milepost.timeline set server = server + 1;
               insert into milepost.timeline (server, id) select server, 5 from milepost.timeline;
               update milepost.timeline set seen_at = now() - interval '30 days'";
    store.pool().execute(old).await.unwrap();
    assert_eq!(store.notice_promotion().await.unwrap(), None, "nothing was promoted");
    let floor = async || -> i32 {
        sqlx::query_scalar("select milepost.run_token_floor()").fetch_one(store.pool()).await.unwrap()
    };
    assert_eq!(
        floor().await / 50_000,
        12,
        "the old server had given tokens above 400,000, or 500,000 if it was promoted again"
    );
    assert_eq!(store.examine(Check::Promoted, &look()).await.unwrap(), None);
    // Without this, a promotion to a timeline that the old server had, too, would not be noticed.
    let promoted = "update milepost.timeline set id = 99, noted_in = pg_current_xact_id()::xid::text::bigint where timelines_before > 0";
    store.pool().execute(promoted).await.unwrap();
    assert_eq!(store.notice_promotion().await.unwrap(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_no_standby_has_is_not_taken_in_hand() {
    let mut lonely = Lonely::create().await;
    let id = lonely.scene.enqueue(Scene::job()).await;
    let (scene, store, worker) = (lonely.scene.clone(), lonely.scene.store.clone(), lonely.scene.worker);
    let claim = async move { scene.claim_for(worker, 1).await.map(drop) };
    let held = lonely.told_when_safe(claim, async move { store.held(worker).await }).await;
    assert_eq!(held.iter().map(|job| job.run.job).collect::<Vec<_>>(), [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_no_standby_has_is_not_confirmed() {
    let mut lonely = Lonely::create().await;
    let job = lonely.scene.running(Scene::job()).await;
    let finish = [Finish { run: job.run, end: DONE, grouped: false, task: false }];
    let (store, worker) = (lonely.scene.store.clone(), lonely.scene.worker);
    let (again, repeated) = (store.clone(), finish.clone());
    let told = lonely
        .told_when_safe(async move { store.finish_many(worker, &finish).await.map(drop) }, async move {
            again.finish_many(worker, &repeated).await
        })
        .await;
    assert_eq!(told, [Finished::Repeated]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_fenced_by_an_end_that_no_standby_has() {
    let mut lonely = Lonely::create().await;
    let run = lonely.scene.running(Scene::job()).await.run;
    let (store, worker) = (lonely.scene.store.clone(), lonely.scene.worker);
    let cancel = Operation { grace: Duration::ZERO, ..Operation::new(Verb::Cancel) };
    let finish = [Finish { run, end: DONE, grouped: false, task: false }];
    let again = store.clone();
    let told = lonely
        .told_when_safe(async move { store.operate(run.job, &cancel).await.map(drop) }, async move {
            again.finish_many(worker, &finish).await
        })
        .await;
    assert_eq!(told, [Finished::Fenced]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_functions_that_change_nothing_answer_when_a_standby_has_what_they_saw() {
    let mut lonely = Lonely::create().await;
    let run = lonely.scene.running(Scene::job()).await.run;
    let complete = format!("select milepost.complete('{}', {})", run.job.0, run.token.0);
    let expect = "select milepost.expect_from('c', 'order', '1', 7)".to_owned();
    // An event whose predecessor does not arrive becomes a dead letter.
    for sql in [
        "select milepost.put_consumer('late', gap_wait_ms => 1, begins_anywhere => false)",
        "select milepost.receive('late', 'order', '1', 2, gen_random_uuid(), 'order.paid')",
        "select pg_sleep(0.01)",
        "select milepost.give_up_gaps('late')",
    ] {
        lonely.admin.execute(sql).await.unwrap();
    }
    let letter: i64 =
        sqlx::query_scalar("select pos from milepost.inbox_dead").fetch_one(&mut lonely.admin).await.unwrap();
    let drop_letter = format!("select milepost.drop_dead(array[{letter}]::bigint[]) > 0");
    for sql in [complete, expect, drop_letter] {
        let url = lonely.server.url();
        let ask = async move || -> sqlx::Result<bool> {
            let mut connection = PgConnection::connect(&url).await?;
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&mut connection).await
        };
        let first = ask.clone();
        let changed = lonely.told_when_safe(async move { first().await.map(drop) }, ask()).await;
        assert!(!changed, "the first call has changed it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_standby_has_is_no_duplicate_yet() {
    let mut lonely = Lonely::create().await;
    let job = [Scene::job().key("once")];
    let event = NewEvent::new(Aggregate::new("order", "1"), "order.paid", &1).unwrap();
    let dag = Dag::check(Definition::new("d").task("a", Task::job(KIND))).unwrap();
    let store = lonely.scene.store.clone();
    store.define_dag(&dag).await.unwrap();
    let batch = NewBatch::new("d", &1).unwrap().key("once");
    let daily = Schedule::new("daily", Spec::cron("@daily", "UTC").unwrap(), Scene::job());
    store.put_schedule(&daily, Source::Operator).await.unwrap();
    let asked = Some(uuid::Uuid::now_v7());

    let (first, again) = (store.clone(), store.clone());
    let made = lonely
        .told_when_safe(async move { first.run_schedule_now("daily", asked).await.map(drop) }, async move {
            again.run_schedule_now("daily", asked).await
        })
        .await;
    assert!(matches!(made, Made::Job(job) if job.duplicate), "{made:?}");

    let (first, again, same) = (store.clone(), store.clone(), job.clone());
    let made = lonely
        .told_when_safe(async move { first.enqueue_many(&job).await.map(drop) }, async move {
            again.enqueue_many(&same).await
        })
        .await;
    assert!(made[0].duplicate);

    let (first, again, same) = (store.clone(), store.clone(), event.clone());
    let emitted = lonely
        .told_when_safe(
            async move { first.emit(&event).await.map(drop) },
            async move { again.emit(&same).await },
        )
        .await;
    assert!(emitted.duplicate);

    let letter = NewJob::new("letter", &1).unwrap().key("once");
    let stage = |store: Arc<dyn Store>| {
        let letter = letter.clone();
        async move {
            let mut staging = store.stage_bulk("members.csv").await?;
            staging.add(vec![r#"{"id": 1}"#.to_owned()]).await?;
            staging.start(&letter).await
        }
    };
    let first = stage(store.clone());
    let run = lonely.told_when_safe(async move { first.await.map(drop) }, stage(store.clone())).await;
    assert!(run.duplicate);

    let (first, again, same) = (store.clone(), store, batch.clone());
    let started = lonely
        .told_when_safe(async move { first.start_batch(&batch).await.map(drop) }, async move {
            again.start_batch(&same).await
        })
        .await;
    assert!(started.duplicate);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_action_or_report_is_refused_by_a_state_that_no_standby_has() {
    let mut lonely = Lonely::create().await;
    let store = lonely.scene.store.clone();
    let cancel = || Operation { grace: Duration::ZERO, ..Operation::new(Verb::Cancel) };
    let job = lonely.scene.enqueue(Scene::job()).await;
    let (first, again) = (store.clone(), store.clone());
    let refused = lonely
        .told_when_safe(async move { first.operate(job, &cancel()).await.map(drop) }, async move {
            Ok(JobAction::Retry.perform(job, &Inputs::default(), again.as_ref()).await)
        })
        .await;
    assert!(matches!(refused, Err(ActionError::Store(StoreError::Illegal { .. }))), "{refused:?}");

    let run = lonely.scene.running(Scene::job()).await.run;
    let report = [Report { run, progress: None, checkpoint: Some("7".to_owned()) }];
    let first = store.clone();
    let accepted = lonely
        .told_when_safe(async move { first.operate(run.job, &cancel()).await.map(drop) }, async move {
            store.report_many(&report).await
        })
        .await;
    assert_eq!(accepted, [false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_learns_that_nothing_changed_when_a_standby_has_the_change() {
    let mut lonely = Lonely::create().await;
    let secret = Secret::of_random(&[7; RANDOM_BYTES]);
    let store = lonely.scene.store.clone();
    let limit = Target::Kind("mail".to_owned());
    store.put_limit(&Limit::kind("mail", Rate::steady(1.0)), Source::Operator).await.unwrap();
    for store in [store.clone(), store.acting_as(Actor::nobody())] {
        let (first, again) = (store.clone(), store.clone());
        let paused = lonely
            .told_when_safe(async move { first.pause_queue("q", true).await.map(drop) }, async move {
                again.pause_queue("q", true).await
            })
            .await;
        assert!(!paused);
        store.pause_queue("q", false).await.unwrap();
    }
    let (first, again) = (store.clone(), store.clone());
    let of = limit.clone();
    let removed = lonely
        .told_when_safe(
            async move { first.remove_limit(&of, Source::Operator).await.map(drop) },
            async move { again.remove_limit(&limit, Source::Operator).await },
        )
        .await;
    assert!(!removed);
    store.create_token(&NewToken::new("ci", Role::Operator, &secret, "me")).await.unwrap();
    let prefix = secret.prefix().to_owned();
    let same = prefix.clone();
    let again = store.clone();
    let revoked = lonely
        .told_when_safe(async move { store.revoke_token(&prefix, "me").await.map(drop) }, async move {
            again.revoke_token(&same, "me").await
        })
        .await;
    assert!(!revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_standby_has_refuses_no_operator_yet() {
    let mut lonely = Lonely::create().await;
    let job = lonely.scene.enqueue(Scene::job()).await;
    let store = lonely.scene.store.clone();
    let dag = Dag::check(Definition::new("d").task("a", Task::job(KIND))).unwrap();
    store.define_dag(&dag).await.unwrap();
    let batch = store.start_batch(&NewBatch::new("d", &1).unwrap()).await.unwrap().batch;

    let cancel = || Operation::new(Verb::Cancel);
    let (first, again) = (store.clone(), store.clone());
    let refused = lonely
        .told_when_safe(async move { first.operate(job, &cancel()).await.map(drop) }, async move {
            Ok(again.operate(job, &cancel()).await)
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Illegal { .. })), "{refused:?}");

    let what = BatchVerb::Cancel { tasks: vec![0] };
    let cancel = BatchOperation { batch, generation: None, grace: Duration::ZERO, note: None, what };
    let same = cancel.clone();
    let again = store.clone();
    let refused = lonely
        .told_when_safe(async move { store.operate_batch(&cancel).await.map(drop) }, async move {
            Ok(again.operate_batch(&same).await)
        })
        .await;
    assert!(refused.is_err() || refused.is_ok_and(|operated| operated.changed == 0));
}
