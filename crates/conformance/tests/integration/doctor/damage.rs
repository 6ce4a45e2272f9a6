//! Deliberate damage of every type that a check detects.

use std::time::Duration;

use milepost_core::doctor::Check;
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::state::JobState;
use milepost_testkit::Scene;
use milepost_testkit::home::Home;

/// A store that is damaged on purpose.
pub(crate) struct Patient<'a> {
    pub(crate) home: &'a dyn Home,
    pub(crate) scene: Scene,
}

/// The other checks that necessarily have findings, too; `None` if another function does the damage.
pub(crate) type Besides = Option<Vec<Check>>;

pub(crate) const NOTHING_BESIDES: Besides = Some(Vec::new());

impl Patient<'_> {
    pub(crate) async fn tamper(&self, sql: &str) {
        self.home.tamper(sql).await;
    }

    pub(crate) async fn of(&self, table: &str, change: &str, job: JobId) {
        let key = if table == "history" { "job_id" } else { "id" };
        self.tamper(&format!("{change} where {key} = {}", self.home.id(job))).await;
    }

    async fn job_in(&self, state: JobState) -> JobId {
        self.scene.job_in(state).await.0
    }

    /// Returns the time an hour ago as a literal.
    pub(crate) fn past(&self) -> String {
        self.home.ago(Duration::from_secs(3600))
    }

    /// Creates a running job of a group, and one that waits.
    pub(crate) async fn grouped(&self) -> (JobId, JobId) {
        let holder = self.scene.running(Scene::job().group("g")).await.run.job;
        (holder, self.scene.enqueue(Scene::job().group("g")).await)
    }

    /// Damages the store so that the check has a finding. Returns which other checks have findings; `None` for checks that are not about rows.
    pub(crate) async fn damage(&self, check: Check) -> Besides {
        let damaged = self.damage_places(check).await.or(self.damage_histories(check).await);
        let damaged = damaged.or(self.damage_keys(check).await).or(self.damage_groups(check).await);
        let damaged = damaged.or(self.damage_lateness(check).await).or(self.damage_bulks(check).await);
        damaged.or(self.damage_batches(check).await).or(self.damage_events(check).await)
    }

    /// Deletes, duplicates or changes rows of a job so that they contradict its history.
    async fn damage_places(&self, check: Check) -> Besides {
        let home = self.home;
        let (past, at) = (self.past(), |column| home.time(column));
        match check {
            Check::LiveWithoutJob => {
                self.of("job", "delete from milepost.job", self.job_in(JobState::Pending).await).await;
                return Some(vec![Check::HistoryWithoutJob]);
            }
            Check::JobWithoutPlace => {
                self.of("live", "delete from milepost.live", self.job_in(JobState::Running).await).await;
                self.of("ended", "delete from milepost.ended", self.job_in(JobState::Canceled).await).await;
                self.of("live", "delete from milepost.live", self.job_in(JobState::RetryWait).await).await;
            }
            Check::JobInBoth => {
                let job = home.id(self.job_in(JobState::Succeeded).await);
                self.tamper(&format!(
                    "insert into milepost.live (id, kind, queue, priority, state, token, attempt, max_attempts)
                     select id, kind, queue, priority, 'failed', 1, 1, max_attempts from milepost.job where id = {job}"
                ))
                .await;
                return Some(vec![Check::StateDiffers]);
            }
            Check::StateDiffers => {
                let change = format!("update milepost.live set state = 'failed', {} = null", at("ready_at"));
                self.of("live", &change, self.job_in(JobState::Pending).await).await;
            }
            Check::TokenDiffers => {
                self.of(
                    "ended",
                    "update milepost.ended set token = 0",
                    self.job_in(JobState::Succeeded).await,
                )
                .await;
                self.of("live", "update milepost.live set token = 0", self.job_in(JobState::RetryWait).await)
                    .await;
            }
            Check::AttemptsOver => {
                let change = "update milepost.live set attempt = max_attempts + 1";
                self.of("live", change, self.job_in(JobState::RetryWait).await).await;
            }
            Check::ReadyAtWrong => {
                let ready_at = at("ready_at");
                self.of(
                    "live",
                    &format!("update milepost.live set {ready_at} = {past}"),
                    self.job_in(JobState::Running).await,
                )
                .await;
                self.of(
                    "live",
                    &format!("update milepost.live set {ready_at} = null"),
                    self.job_in(JobState::Pending).await,
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
            _ => return None,
        }
        NOTHING_BESIDES
    }

    /// Creates histories that the verbs cannot produce.
    async fn damage_histories(&self, check: Check) -> Besides {
        let home = self.home;
        let at = |column| home.time(column);
        match check {
            Check::NotCreatedOnce => {
                self.of("history", "delete from milepost.history", self.job_in(JobState::Pending).await)
                    .await;
            }
            Check::HistoryGap => {
                self.job_in(JobState::Succeeded).await;
                self.tamper("update milepost.history set from_state = 'retry_wait' where verb = 'claim'")
                    .await;
            }
            Check::HistoryOffGraph => {
                self.job_in(JobState::Canceled).await;
                self.tamper("update milepost.history set verb = 'mark' where verb = 'cancel'").await;
            }
            Check::TokenOff => {
                let job = self.job_in(JobState::Canceled).await;
                self.tamper("update milepost.history set token = 5 where verb = 'cancel'").await;
                self.of("ended", "update milepost.ended set token = 5", job).await;
            }
            Check::TwoEnds => {
                self.job_in(JobState::Succeeded).await;
                let columns = format!("job_id, {}, verb, from_state, to_state, attempt, token", at("at"));
                self.tamper(&format!(
                    "insert into milepost.history ({columns}) select {columns} from milepost.history where verb = 'succeed'"
                ))
                .await;
                return Some(vec![Check::HistoryGap]);
            }
            Check::HistoryWithoutJob => {
                let job = self.job_in(JobState::Succeeded).await;
                self.of("job", "delete from milepost.job", job).await;
                self.of("ended", "delete from milepost.ended", job).await;
            }
            _ => return None,
        }
        NOTHING_BESIDES
    }

    /// Creates keys that do not have exactly one job.
    async fn damage_keys(&self, check: Check) -> Besides {
        let Self { home, scene } = self;
        match check {
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
                let other = self.job_in(JobState::Running).await;
                scene.enqueue(Scene::job().key("k")).await;
                self.of("job", "update milepost.job set key = 'k'", other).await;
            }
            _ => return None,
        }
        NOTHING_BESIDES
    }

    /// Damages slots and their holders.
    async fn damage_groups(&self, check: Check) -> Besides {
        let home = self.home;
        let (past, at) = (self.past(), |column| home.time(column));
        match check {
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
            _ => return None,
        }
        NOTHING_BESIDES
    }

    /// Creates overdue work that no running worker has handled.
    async fn damage_lateness(&self, check: Check) -> Besides {
        let Self { home, scene } = self;
        let (past, at) = (self.past(), |column| home.time(column));
        match check {
            Check::RunningWithoutWorker => {
                let job = scene.running(Scene::job().group("g")).await.run.job;
                self.of("live", "update milepost.live set worker_id = 999999", job).await;
            }
            Check::RunningPastLease => {
                self.job_in(JobState::Running).await;
                self.tamper(&format!("update milepost.worker set {} = {past}", at("ended_at"))).await;
            }
            Check::StopOverdue => {
                let change =
                    format!("update milepost.live set stop_verb = 'cancel', {} = {past}", at("stop_at"));
                self.of("live", &change, self.job_in(JobState::Running).await).await;
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
            Check::WaitsByWrongClock => {
                let year = home.ahead(Duration::from_secs(365 * 86_400));
                let job = self.job_in(JobState::RetryWait).await;
                self.of("live", &format!("update milepost.live set {} = {year}", at("ready_at")), job).await;
                self.of("history", &format!("update milepost.history set {} = {year}", at("at")), job).await;
            }
            _ => return None,
        }
        NOTHING_BESIDES
    }

    /// Starts a bulk job that waits.
    pub(crate) async fn bulk(&self) -> JobId {
        self.scene.store.start_bulk(&Scene::job()).await.unwrap().job
    }

    /// Adds a file with `rows` rows that is staged for this run.
    async fn staged(&self, run: &str, rows: i64) {
        let (home, now) = (self.home, self.home.ago(Duration::ZERO));
        let (started_at, touched_at) = (home.time("started_at"), home.time("touched_at"));
        self.tamper(&format!(
            "insert into milepost.bulk_file (run, name, rows, {started_at}, {touched_at})
             values ({run}, 'a.csv', {rows}, {now}, {now})"
        ))
        .await;
        for n in 1..=rows {
            self.tamper(&format!(
                "insert into milepost.bulk_target (run, n, row) values ({run}, {n}, '{{}}')"
            ))
            .await;
        }
    }

    async fn of_bulk(&self, change: &str, job: JobId) {
        self.tamper(&format!("update milepost.bulk set {change} where job_id = {}", self.home.id(job))).await;
    }

    /// Creates bulk jobs that do not match their jobs or their own rows.
    async fn damage_bulks(&self, check: Check) -> Besides {
        let (home, past, lost) = (self.home, self.past(), self.home.id(JobId::new()));
        let at = |column| home.time(column);
        match check {
            Check::BulkWithoutJob => {
                self.tamper(&format!("insert into milepost.bulk (job_id, origin) values ({lost}, {lost})"))
                    .await;
            }
            Check::BulkLeftover => {
                let (set_at, at) = (at("set_at"), at("at"));
                self.tamper(&format!(
                    "insert into milepost.bulk_setting (job_id, {set_at}) values ({lost}, {past});
                     insert into milepost.bulk_failure (job_id, key, code, message, {at})
                     values ({lost}, '[1]', 'x', 'x', {past})"
                ))
                .await;
                self.staged(&lost, 3).await;
                self.tamper("delete from milepost.bulk_file").await;
                let (old, touched_at) = (home.id(JobId::new()), home.time("touched_at"));
                self.staged(&old, 3).await;
                let long_ago = home.ago(Duration::from_secs(4 * 3600));
                self.tamper(&format!("update milepost.bulk_file set {touched_at} = {long_ago}")).await;
            }
            Check::BulkRowsDiffer => {
                let [less, more] = [self.bulk().await, self.bulk().await].map(|job| home.id(job));
                self.staged(&less, 3).await;
                self.staged(&more, 3).await;
                self.tamper(&format!("delete from milepost.bulk_target where run = {less} and n = 1")).await;
                self.tamper(&format!(
                    "insert into milepost.bulk_target (run, n, row) values ({more}, 4, '{{}}')"
                ))
                .await;
            }
            Check::BulkEndDiffers => {
                let job = self.bulk().await;
                let run = self.scene.claim(1).await.remove(0);
                assert_eq!(run.run.job, job);
                self.scene.finish(&run, End::Succeed { result: None }).await;
                self.of_bulk(&format!("{} = {past}", at("ended_at")), self.bulk().await).await;
            }
            Check::BulkTokenAhead => self.of_bulk("token = 1", self.bulk().await).await,
            Check::BulkFailuresDiffer => self.of_bulk("failed = 1", self.bulk().await).await,
            Check::BulkCursorBeyond => {
                let change = format!(
                    "retry_of = origin, cursor_key = '[10]', upper_key = '[9]', {} = {past}",
                    at("surveyed_at")
                );
                self.of_bulk(&change, self.bulk().await).await;
                self.of_bulk("cursor_key = '[1]'", self.bulk().await).await;
            }
            _ => return None,
        }
        NOTHING_BESIDES
    }
}
