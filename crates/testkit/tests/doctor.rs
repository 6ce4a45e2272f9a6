//! Damage made by hand is found by its check, and mended where that is safe.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

use std::sync::Arc;
use std::time::Duration;

use milepost_core::doctor::{Check, Finding, Severity, Stores};
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::limit::Limit;
use milepost_core::port::{DoctorStore, Operation};
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::Scene;
use milepost_testkit::database::Database;
use milepost_testkit::examine::{examine, examined, look};
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};
use milepost_testkit::scene::retry;
use milepost_testkit::server::Server;
use milepost_testkit::wait;
use sqlx::{Connection, Executor, PgConnection};

/// A store that is damaged on purpose.
struct Patient<'a> {
    home: &'a dyn Home,
    scene: Scene,
}

impl Patient<'_> {
    async fn tamper(&self, sql: &str) {
        self.home.tamper(sql).await;
    }

    async fn of(&self, table: &str, change: &str, job: JobId) {
        let key = if table == "history" { "job_id" } else { "id" };
        self.tamper(&format!("{change} where {key} = {}", self.home.id(job))).await;
    }

    /// A job of a group that runs, and one that waits.
    async fn grouped(&self) -> (JobId, JobId) {
        let holder = self.scene.running(Scene::job().group("g")).await.run.job;
        (holder, self.scene.enqueue(Scene::job().group("g")).await)
    }

    /// Damages the store so that the check finds it. Answers what else is found, because it cannot be otherwise;
    /// `None` for checks that are not about rows.
    async fn damage(&self, check: Check) -> Option<Vec<Check>> {
        let Self { home, scene } = self;
        let (past, at) = (home.ago(Duration::from_secs(3600)), |column| home.time(column));
        let job_in = async |state| scene.job_in(state).await.0;
        match check {
            Check::LiveWithoutJob => {
                self.of("job", "delete from milepost.job", job_in(JobState::Pending).await).await;
                return Some(vec![Check::HistoryWithoutJob]);
            }
            Check::JobWithoutPlace => {
                self.of("live", "delete from milepost.live", job_in(JobState::Running).await).await;
                self.of("ended", "delete from milepost.ended", job_in(JobState::Canceled).await).await;
                self.of("live", "delete from milepost.live", job_in(JobState::RetryWait).await).await;
            }
            Check::JobInBoth => {
                let job = home.id(job_in(JobState::Succeeded).await);
                self.tamper(&format!(
                    "insert into milepost.live (id, kind, queue, priority, state, token, attempt, max_attempts)
                     select id, kind, queue, priority, 'failed', 1, 1, max_attempts from milepost.job where id = {job}"
                ))
                .await;
                return Some(vec![Check::StateDiffers]);
            }
            Check::StateDiffers => {
                let change = format!("update milepost.live set state = 'failed', {} = null", at("ready_at"));
                self.of("live", &change, job_in(JobState::Pending).await).await;
            }
            Check::TokenDiffers => {
                self.of("ended", "update milepost.ended set token = 0", job_in(JobState::Succeeded).await)
                    .await;
                self.of("live", "update milepost.live set token = 0", job_in(JobState::RetryWait).await)
                    .await;
            }
            Check::AttemptsOver => {
                let change = "update milepost.live set attempt = max_attempts + 1";
                self.of("live", change, job_in(JobState::RetryWait).await).await;
            }
            Check::NotCreatedOnce => {
                self.of("history", "delete from milepost.history", job_in(JobState::Pending).await).await;
            }
            Check::HistoryGap => {
                job_in(JobState::Succeeded).await;
                self.tamper("update milepost.history set from_state = 'retry_wait' where verb = 'claim'")
                    .await;
            }
            Check::HistoryOffGraph => {
                job_in(JobState::Canceled).await;
                self.tamper("update milepost.history set verb = 'mark' where verb = 'cancel'").await;
            }
            Check::TokenOff => {
                let job = job_in(JobState::Canceled).await;
                self.tamper("update milepost.history set token = 5 where verb = 'cancel'").await;
                self.of("ended", "update milepost.ended set token = 5", job).await;
            }
            Check::TwoEnds => {
                job_in(JobState::Succeeded).await;
                let columns = format!("job_id, {}, verb, from_state, to_state, attempt, token", at("at"));
                self.tamper(&format!(
                    "insert into milepost.history ({columns}) select {columns} from milepost.history where verb = 'succeed'"
                ))
                .await;
                return Some(vec![Check::HistoryGap]);
            }
            Check::KeyWithoutJob => {
                let id = home.id(JobId::new());
                self.tamper(&format!(
                    "insert into milepost.job_key (kind, key, job_id) values ('test', 'lost', {id})"
                ))
                .await;
            }
            Check::JobWithoutKey => {
                scene.enqueue(Scene::job().key("k")).await;
                self.tamper("delete from milepost.job_key").await;
            }
            Check::KeyShared => {
                let other = job_in(JobState::Running).await;
                scene.enqueue(Scene::job().key("k")).await;
                self.of("job", "update milepost.job set key = 'k'", other).await;
            }
            Check::SlotWithoutHolder => {
                let (holder, _) = self.grouped().await;
                self.of("live", "update milepost.live set group_key = null", holder).await;
            }
            Check::HolderWithoutSlot => {
                self.grouped().await;
                self.tamper("delete from milepost.group_slot").await;
            }
            Check::GroupOverLimit => {
                let (_, waiting) = self.grouped().await;
                let (ready_at, due_at) = (at("ready_at"), at("due_at"));
                let change = format!(
                    "update milepost.live set state = 'pending', {ready_at} = {due_at}, {due_at} = null"
                );
                self.of("live", &change, waiting).await;
                return Some(vec![Check::StateDiffers, Check::HolderWithoutSlot]);
            }
            Check::GroupLeftWaiting => {
                let (holder, waiting) = self.grouped().await;
                self.of("live", "update milepost.live set group_key = null", holder).await;
                self.of("live", &format!("update milepost.live set {} = {past}", at("due_at")), waiting)
                    .await;
                self.tamper("delete from milepost.group_slot").await;
            }
            Check::RunningWithoutWorker => {
                let job = scene.running(Scene::job().group("g")).await.run.job;
                self.of("live", "update milepost.live set worker_id = 999999", job).await;
            }
            Check::RunningPastLease => {
                job_in(JobState::Running).await;
                self.tamper(&format!("update milepost.worker set {} = {past}", at("ended_at"))).await;
            }
            Check::StopOverdue => {
                let change =
                    format!("update milepost.live set stop_verb = 'cancel', {} = {past}", at("stop_at"));
                self.of("live", &change, job_in(JobState::Running).await).await;
            }
            Check::ReadyAtWrong => {
                let ready_at = at("ready_at");
                self.of(
                    "live",
                    &format!("update milepost.live set {ready_at} = {past}"),
                    job_in(JobState::Running).await,
                )
                .await;
                self.of(
                    "live",
                    &format!("update milepost.live set {ready_at} = null"),
                    job_in(JobState::Pending).await,
                )
                .await;
            }
            Check::ProgressWithoutJob => {
                let (id, updated_at) = (home.id(JobId::new()), at("updated_at"));
                self.tamper(&format!(
                    "insert into milepost.progress (job_id, {updated_at}) values ({id}, {past})"
                ))
                .await;
            }
            Check::HistoryWithoutJob => {
                let job = job_in(JobState::Succeeded).await;
                self.of("job", "delete from milepost.job", job).await;
                self.of("ended", "delete from milepost.ended", job).await;
            }
            Check::WorkerUnburied => {
                self.tamper(&format!("update milepost.worker set {} = {past}", at("lease_expires_at"))).await;
            }
            Check::ScheduleOverdue => {
                let spec = Spec::cron("0 3 * * *", "UTC").unwrap();
                let schedule = Schedule::new("nightly", spec, Scene::job());
                scene.store.put_schedule(&schedule, Source::Operator).await.unwrap();
                self.tamper(&format!("update milepost.schedule set {} = {past}", at("next_at"))).await;
            }
            _ => return None,
        }
        Some(Vec::new())
    }
}

fn checks(findings: &[Finding]) -> Vec<Check> {
    findings.iter().map(|finding| finding.check).collect()
}

async fn every_damage_is_found_and_mended_where_that_is_safe(fresh: impl AsyncFn() -> Box<dyn Home>) {
    let mut tried = 0;
    for &check in Check::ALL.iter().filter(|check| check.stores() == Stores::All) {
        let home = fresh().await;
        let patient = Patient { home: home.as_ref(), scene: Scene::on(home.store()).await };
        let Some(mut expected) = patient.damage(check).await else { continue };
        tried += 1;
        expected.push(check);
        expected.sort_unstable();
        let findings = examine(&patient.scene.store).await;
        assert_eq!(checks(&findings), expected, "{check}: {findings:#?}");
        for finding in &findings {
            assert!(!finding.examples.is_empty() && finding.count >= finding.examples.len() as u64);
        }
        is_mended_where_that_is_safe(check, &patient).await;
    }
    assert_eq!(tried, Check::ALL.iter().filter(|check| check.stores() == Stores::All).count() - 1);
}

async fn is_mended_where_that_is_safe(check: Check, patient: &Patient<'_>) {
    let Patient { home, scene } = patient;
    let mended = scene.store.repair(check, "ada@host", &look(), 100).await.unwrap();
    let left = examine(&scene.store).await;
    if check.repair().is_none() {
        assert_eq!(mended, 0, "{check}");
        assert!(checks(&left).contains(&check), "{check}");
        assert_eq!(home.count("select count(*) from milepost.audit").await, 0, "{check}");
        return;
    }
    assert!(mended > 0 || check == Check::WorkerUnburied, "{check}");
    assert!(!checks(&left).contains(&check), "{check}: {left:#?}");
    let audited = "select count(*) from milepost.audit where who = 'ada@host' and what = 'doctor.repair'";
    assert_eq!(home.count(audited).await, i64::from(mended > 0), "{check}");
    // What the damage was about is whole again.
    assert_eq!(left, [], "{check}");
    for job in scene.store.jobs(&milepost_core::listing::JobFilter::default()).await.unwrap() {
        scene.assert_history_folds(job.id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_a_postgres_store_is_found_and_mended_where_that_is_safe() {
    every_damage_is_found_and_mended_where_that_is_safe(async || Box::new(PostgresHome::fresh().await) as _)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_a_sqlite_store_is_found_and_mended_where_that_is_safe() {
    every_damage_is_found_and_mended_where_that_is_safe(async || Box::new(SqliteHome::fresh().await) as _)
        .await;
}

async fn homes() -> [Box<dyn Home>; 2] {
    [Box::new(PostgresHome::fresh().await), Box::new(SqliteHome::fresh().await)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_put_back_in_its_place_stands_as_it_did() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        for &state in JobState::ALL {
            let job = scene.job_left_in(state).await;
            let before = scene.view(job).await.row;
            let id = home.id(job);
            home.tamper(&format!("delete from milepost.live where id = {id}")).await;
            home.tamper(&format!("delete from milepost.ended where id = {id}")).await;
            assert_eq!(scene.store.repair(Check::JobWithoutPlace, "ada@host", &look(), 9).await.unwrap(), 1);
            let after = scene.view(job).await.row;
            let stands = |row: &milepost_core::listing::JobRow| {
                (row.state, row.token, row.attempt, row.max_attempts, row.worker, row.ready_at.is_some())
            };
            assert_eq!(stands(&after), stands(&before), "{state}");
            assert_eq!(examine(&scene.store).await, [], "{state}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_history_is_not_whole_is_not_put_back() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let (job, _) = scene.job_in(JobState::RetryWait).await;
        home.tamper("delete from milepost.history where verb = 'claim'").await;
        home.tamper(&format!("delete from milepost.live where id = {}", home.id(job))).await;
        assert_eq!(scene.store.repair(Check::JobWithoutPlace, "ada@host", &look(), 9).await.unwrap(), 0);
        assert!(examined(&scene.store, Check::JobWithoutPlace).await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_freed_goes_to_the_one_that_waits() {
    for home in homes().await {
        let patient = Patient { home: home.as_ref(), scene: Scene::on(home.store()).await };
        let scene = &patient.scene;
        let (holder, waiting) = patient.grouped().await;
        patient.of("live", "update milepost.live set group_key = null", holder).await;
        assert_eq!(scene.state(waiting).await, JobState::Blocked);
        scene.store.repair(Check::SlotWithoutHolder, "ada@host", &look(), 9).await.unwrap();
        assert_eq!(scene.state(waiting).await, JobState::Pending);
        scene.assert_history_folds(waiting).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_of_a_group_are_held_against_its_limit() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        scene.store.put_limit(&Limit::group("g:*").slots(2), Source::Operator).await.unwrap();
        let jobs: Vec<_> = (0..3).map(|_| Scene::job().group("g:1")).collect();
        scene.store.enqueue_many(&jobs).await.unwrap();
        assert_eq!(examine(&scene.store).await, [], "two of three hold it");
        home.tamper("delete from milepost.group_slot").await;
        let mended = scene.store.repair(Check::HolderWithoutSlot, "ada@host", &look(), 9).await.unwrap();
        assert_eq!(mended, 2, "each gets a slot of its own");
        assert_eq!(examine(&scene.store).await, []);
        scene.store.put_limit(&Limit::group("g:*").slots(1), Source::Operator).await.unwrap();
        let findings = examine(&scene.store).await;
        assert_eq!(checks(&findings), [Check::GroupOverLimit]);
        assert_eq!(findings[0].severity, Severity::Warning, "the surplus drains");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_worker_is_fenced_and_spends_its_attempt() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let (again, last) = (Scene::job(), Scene::job().max_attempts(1));
        let (again, last) = (scene.running(again).await, scene.running(last).await);
        home.tamper("update milepost.live set worker_id = null").await;
        scene.store.repair(Check::RunningWithoutWorker, "ada@host", &look(), 9).await.unwrap();
        assert_eq!(scene.state(again.run.job).await, JobState::RetryWait);
        assert_eq!(scene.state(last.run.job).await, JobState::Failed);
        let late = scene.finish(&again, End::Succeed { result: None }).await;
        assert_eq!(late, milepost_core::finish::Finished::Fenced);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_behind_its_history_is_raised_but_not_while_the_job_runs() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let first = scene.running(Scene::job()).await;
        scene.finish(&first, retry(Duration::ZERO)).await;
        scene.operate(first.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
        let run = scene.claim(1).await.remove(0).run;
        home.tamper("update milepost.live set token = 1").await;
        assert_eq!(scene.store.repair(Check::TokenDiffers, "ada@host", &look(), 9).await.unwrap(), 0);
        assert_eq!(scene.view(run.job).await.row.token.0, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_takes_too_long_is_given_up() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let jobs: Vec<_> = (0..4000).map(|_| Scene::job()).collect();
        for _ in 0..3 {
            let jobs: Vec<_> = jobs.iter().map(|_| Scene::job()).collect();
            scene.store.enqueue_many(&jobs).await.unwrap();
        }
        let look = milepost_core::doctor::Look { time_limit: Duration::from_millis(1), ..look() };
        let answer = scene.store.examine(Check::StateDiffers, &look).await;
        assert!(
            answer.as_ref().is_err_and(|error| !error.is_transient()),
            "the time limit holds: {answer:?}"
        );
        assert_eq!(examine(&scene.store).await, [], "and the connection is as good as before");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_a_postgres_server_back_is_told() {
    let (database, store) = Database::with_store().await;
    let mut owner = PgConnection::connect(&database.url()).await.unwrap();
    let mut reader = PgConnection::connect(&database.url()).await.unwrap();
    let mut writer = PgConnection::connect(&database.url()).await.unwrap();
    let pid = async |connection: &mut PgConnection| -> i32 {
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(connection).await.unwrap()
    };
    let (reader_pid, writer_pid) = (pid(&mut reader).await, pid(&mut writer).await);
    reader.execute("begin isolation level repeatable read; select 1").await.unwrap();
    writer.execute("begin; select pg_current_xact_id()").await.unwrap();
    owner.execute("alter table milepost.history set (autovacuum_enabled = false)").await.unwrap();
    owner
        .execute(
            "begin;
             insert into milepost.history (job_id, token, attempt, verb, to_state)
             select '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c', 0, 0, 'create', 'pending' from generate_series(1, 200001);
             rollback;
             select pg_stat_force_next_flush()",
        )
        .await
        .unwrap();
    let impatient = milepost_core::doctor::Look { patience: Duration::from_millis(1), ..look() };
    let expected = [
        (Check::VacuumHeldBack, format!("session {reader_pid}")),
        (Check::LongTransaction, format!("session {writer_pid}")),
        (Check::AutovacuumOff, "history".to_owned()),
        (Check::DeadRows, "history".to_owned()),
    ];
    for (check, what) in expected {
        wait::until(&format!("{check} is found"), || async {
            let finding = store.examine(check, &impatient).await.unwrap();
            finding.is_some_and(|finding| finding.examples.iter().any(|example| example.what == what))
        })
        .await;
    }
    for check in [Check::VacuumHeldBack, Check::LongTransaction] {
        assert_eq!(store.examine(check, &look()).await.unwrap(), None, "{check} is a matter of patience");
    }
    let tomorrow = look().now + jiff::SignedDuration::from_hours(24);
    let other_clock = milepost_core::doctor::Look { now: tomorrow, ..look() };
    let finding = store.examine(Check::ClockDifference, &other_clock).await.unwrap().unwrap();
    assert!(finding.examples[0].detail.starts_with("ahead of the database by 86"), "{finding:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn weak_settings_and_missing_privileges_are_told() {
    let server = Server::create().await;
    let store = milepost_testkit::database::open(&server.url()).await;
    assert_eq!(store.examine(Check::WeakDurability, &look()).await.unwrap(), None);
    let mut owner = PgConnection::connect(&server.url()).await.unwrap();
    for statement in [
        "alter system set full_page_writes = off",
        "alter system set synchronous_commit = off",
        "select pg_reload_conf()",
        "create role guest login",
        "grant usage on schema milepost to guest",
        "grant select on all tables in schema milepost to guest",
    ] {
        owner.execute(statement).await.unwrap();
    }
    let url = server.url().replace("postgres@", "guest@");
    let options = milepost_postgres::PostgresOptions::default();
    let guest = milepost_postgres::PostgresStore::connect(&url, options).await.unwrap();
    for check in [Check::WeakDurability, Check::CommitsUnsafe, Check::MissingPrivilege] {
        wait::until(&format!("{check} is found"), || async {
            guest.examine(check, &look()).await.unwrap().is_some()
        })
        .await;
    }
    assert_eq!(store.examine(Check::MissingPrivilege, &look()).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_and_a_log_that_grew_are_told() {
    let home = SqliteHome::fresh().await;
    let store: Arc<dyn milepost_core::port::Store> = home.store();
    let scene = Scene::on(Arc::clone(&store)).await;
    scene.enqueue(Scene::job()).await;
    let log = home.address().strip_prefix("sqlite:").unwrap().to_owned() + "-wal";
    let log = std::fs::File::options().write(true).open(log).unwrap();
    log.set_len(200 << 20).unwrap();
    assert!(examined(&store, Check::LogHeldBack).await.is_some());
    // A table that promises more than its rows hold.
    home.tamper(
        "pragma writable_schema = on;
         update sqlite_schema set sql = replace(sql, 'timeout_ms    INTEGER', 'timeout_ms INTEGER NOT NULL')
         where name = 'milepost_job'",
    )
    .await;
    let finding = examined(&store, Check::FileDamaged).await.unwrap();
    assert!(finding.examples[0].detail.contains("timeout_ms"), "{finding:?}");
}
