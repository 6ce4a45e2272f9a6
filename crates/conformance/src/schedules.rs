//! Schedules: each tick happens once with any number of workers, and missed ticks follow the misfire policy.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use milepost::{Outcome, RetryPolicy};
use milepost_core::error::StoreError;
use milepost_core::job::{Enqueued, NewJob, Priority};
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::precedence::{Over, Put};
use milepost_core::schedule::{
    JobTemplate, Made, Makes, Misfire, Schedule, ScheduleView, Source, Spec, schedule_of_key,
};
use milepost_core::search::JobFilter;
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::runtime;
use milepost_testkit::scene::Scene;
use milepost_testkit::wait;

/// The interval of most schedules in these tests: so long that no tick occurs during a test.
const PERIOD: SignedDuration = SignedDuration::from_hours(24 * 100);

/// Returns a schedule that ticks every [`PERIOD`].
pub(super) fn rare(name: &str) -> Schedule {
    Schedule::new(name, Spec::every(PERIOD.unsigned_abs()).expect("invalid interval"), Scene::job())
}

/// Returns the last tick of [`rare`] schedules, or the one that is this number of periods earlier.
pub(super) async fn periods_ago(scene: &Scene, periods: i32) -> Timestamp {
    let now = scene.store.clock().await.unwrap().now;
    let last_s = now.as_second() / PERIOD.as_secs() * PERIOD.as_secs();
    Timestamp::from_second(last_s).unwrap() - PERIOD * periods
}

/// Stores a schedule with this next tick.
pub(super) async fn stand(scene: &Scene, schedule: &Schedule, next_at: Timestamp) {
    let put = scene.store.write_schedule(schedule, Source::Operator, Some(next_at), Over::Any).await.unwrap();
    assert_eq!(put, Put::Stands);
}

pub(super) async fn view(scene: &Scene, name: &str) -> ScheduleView {
    scene.store.schedule(name).await.unwrap().expect("the schedule does not exist")
}

/// Returns the job that was created.
fn job_of(made: Made) -> Enqueued {
    match made {
        Made::Job(job) => job,
        Made::Batch(batch) => panic!("a batch: {batch:?}"),
    }
}

/// Returns the job template of a schedule.
pub(super) fn template(schedule: &Schedule) -> &JobTemplate {
    match &schedule.makes {
        Makes::Job(job) => job,
        Makes::Batch(batch) => panic!("the schedule creates batches: {batch:?}"),
    }
}

async fn is_due(store: &dyn Store) -> bool {
    let clock = store.clock().await.unwrap();
    clock.next_at.is_some_and(|next_at| next_at <= clock.now)
}

/// Executes all due ticks, as a worker does. Returns how many jobs were created.
pub(super) async fn tick_all(store: &dyn Store) -> usize {
    let due = store.due_schedules(100).await.unwrap();
    let now = store.clock().await.unwrap().now;
    let mut made = 0;
    for view in due {
        let tick = view.tick(now).expect("the tick is not due");
        made += store.tick_schedule(&tick).await.unwrap().map_or(0, |ticked| ticked.new_ones());
    }
    made
}

/// Returns all jobs, oldest tick first.
async fn jobs(scene: &Scene) -> Vec<JobRow> {
    let filter = JobFilter { limit: 10_000, ..JobFilter::default() };
    let mut jobs = scene.store.jobs(&filter).await.unwrap();
    jobs.sort_by_key(|job| job.nominal_at);
    jobs
}

async fn nominal_times(scene: &Scene) -> Vec<Timestamp> {
    jobs(scene).await.iter().map(|job| job.nominal_at.expect("the job has no nominal time")).collect()
}

pub async fn a_tick_makes_a_job_that_says_which_tick_it_is(scene: Scene) {
    let tick = periods_ago(&scene, 0).await;
    stand(&scene, &rare("h"), tick).await;
    assert_eq!(scene.store.clock().await.unwrap().next_at, Some(tick));
    assert_eq!(tick_all(scene.store.as_ref()).await, 1);
    assert_eq!(tick_all(scene.store.as_ref()).await, 0, "the tick is no longer due");

    let claimed = scene.claim(10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].nominal_at, Some(tick));
    assert_eq!(scene.store.held(scene.worker).await.unwrap()[0].nominal_at, Some(tick));
    let row = scene.view(claimed[0].run.job).await.row;
    assert_eq!(row.nominal_at, Some(tick));
    assert_eq!(row.key.as_deref().and_then(schedule_of_key), Some("h"));

    let after = view(&scene, "h").await;
    let next_at = tick + PERIOD;
    assert_eq!((after.last_at, after.next_at), (Some(tick), Some(next_at)));
    assert_eq!((after.fired, after.dropped), (1, 0));
    assert_eq!(scene.store.clock().await.unwrap().next_at, Some(next_at));
    let plain = scene.enqueue(Scene::job()).await;
    assert_eq!(scene.view(plain).await.row.nominal_at, None);
}

pub async fn what_was_put_comes_back(scene: Scene) {
    let job = NewJob::new("other", &json!({ "n": 1 }))
        .unwrap()
        .queue("q")
        .priority(Priority::try_from(3).unwrap())
        .group("g")
        .max_attempts(7)
        .timeout(Duration::from_secs(90));
    let nightly = Schedule::new("nightly", Spec::cron("30 3 * * MON-FRI", "Europe/Berlin").unwrap(), job)
        .misfire(Misfire::All { max: 12 })
        .misfire_grace(Duration::from_millis(1500));
    for schedule in [nightly, rare("rare").misfire(Misfire::Skip), rare("once/with a slash")] {
        assert_eq!(scene.store.put_schedule(&schedule, Source::Operator).await.unwrap(), Put::Stands);
        let kept = view(&scene, &schedule.name).await;
        let json = |schedule: &Schedule| serde_json::to_value(schedule).unwrap();
        assert_eq!(json(&kept.schedule), json(&schedule));
        let now = scene.store.clock().await.unwrap().now;
        assert!(kept.next_at.is_some_and(|next_at| next_at > now), "the first tick is in the future");
        assert_eq!((kept.last_at, kept.paused_at, kept.source), (None, None, Source::Operator));
    }
    let names: Vec<String> =
        scene.store.schedules().await.unwrap().into_iter().map(|view| view.schedule.name).collect();
    assert_eq!(names, ["nightly", "once/with a slash", "rare"]);
    let without = scene.store.schedules_without_payloads().await.unwrap();
    let without: Vec<_> = without
        .iter()
        .map(|view| (view.schedule.name.as_str(), view.schedule.makes.columns().1.payload.to_string()))
        .collect();
    let null = || "null".to_owned();
    assert_eq!(without, [("nightly", null()), ("once/with a slash", null()), ("rare", null())]);
    assert!(scene.store.schedule("nowhere").await.unwrap().is_none());
}

pub async fn many_tickers_make_one_job_a_tick(scene: Scene) {
    let first = periods_ago(&scene, 9).await;
    for number in 0..20 {
        let schedule = rare(&format!("s{number}")).misfire(Misfire::All { max: 100 });
        stand(&scene, &schedule, first).await;
    }
    let tickers = (0..8).map(|_| {
        let store = scene.store.clone();
        tokio::spawn(async move {
            let mut made = 0;
            while is_due(store.as_ref()).await {
                made += tick_all(store.as_ref()).await;
            }
            made
        })
    });
    let made: usize = join_all(tickers).await.into_iter().map(Result::unwrap).sum();
    let jobs = jobs(&scene).await;
    let mut ticks: Vec<_> = jobs.iter().map(|job| (job.key.clone(), job.nominal_at)).collect();
    ticks.sort();
    ticks.dedup();
    assert_eq!((made, jobs.len(), ticks.len()), (200, 200, 200));
}

pub async fn a_tick_decided_on_an_old_version_changes_nothing(scene: Scene) {
    let tick_at = periods_ago(&scene, 0).await;
    stand(&scene, &rare("h"), tick_at).await;
    let seen = view(&scene, "h").await;
    let now = scene.store.clock().await.unwrap().now;
    let tick = || seen.tick(now).expect("due");
    assert_eq!(scene.store.tick_schedule(&tick()).await.unwrap().map(|ticked| ticked.new_ones()), Some(1));
    // Another worker that read the schedule at the same time and was delayed.
    assert!(scene.store.tick_schedule(&tick()).await.unwrap().is_none());
    assert!(scene.store.remove_schedule("h", Source::Operator).await.unwrap());
    assert!(scene.store.tick_schedule(&tick()).await.unwrap().is_none(), "the schedule was removed");
    let due_again = tick_at + PERIOD;
    stand(&scene, &rare("h"), due_again).await;
    assert!(
        scene.store.tick_schedule(&tick()).await.unwrap().is_none(),
        "a schedule that was created again is a different one"
    );
    assert_eq!(view(&scene, "h").await.next_at, Some(due_again));
    assert_eq!(jobs(&scene).await.len(), 1);
}

pub async fn a_tick_that_has_its_job_makes_no_second_one(scene: Scene) {
    let tick = periods_ago(&scene, 0).await;
    for _ in 0..2 {
        stand(&scene, &rare("h"), tick).await;
        tick_all(scene.store.as_ref()).await;
        scene.store.remove_schedule("h", Source::Operator).await.unwrap();
    }
    assert_eq!(
        nominal_times(&scene).await,
        [tick],
        "the key of the tick's job is taken, independently of the schedule"
    );
}

pub async fn a_tick_whose_job_is_refused_changes_nothing(scene: Scene) {
    let first = periods_ago(&scene, 2).await;
    stand(&scene, &rare("h").misfire(Misfire::All { max: 9 }), first).await;
    let before = view(&scene, "h").await;
    let mut tick = before.tick(scene.store.clock().await.unwrap().now).expect("due");
    tick.jobs[1].queue = String::new();
    let refused = scene.store.tick_schedule(&tick).await;
    assert!(matches!(refused, Err(StoreError::Invalid { index: 1, .. })), "{refused:?}");
    let after = view(&scene, "h").await;
    assert_eq!((after.next_at, after.version, after.fired), (Some(first), before.version, 0));
    assert_eq!(jobs(&scene).await.len(), 0, "neither job was created");
    assert_eq!(tick_all(scene.store.as_ref()).await, 3, "no tick was lost");
}

pub async fn missed_ticks_go_by_the_policy(scene: Scene) {
    let ago = [4, 3, 2, 1, 0];
    let mut ticks = Vec::new();
    for periods in ago {
        ticks.push(periods_ago(&scene, periods).await);
    }
    for (misfire, expected, dropped) in [
        (Misfire::Skip, &ticks[5..], 5),
        (Misfire::Once, &ticks[4..], 4),
        (Misfire::All { max: 3 }, &ticks[2..], 2),
        (Misfire::All { max: 9 }, &ticks[..], 0),
    ] {
        let name = misfire.to_string();
        stand(&scene, &rare(&name).misfire(misfire), ticks[0]).await;
        assert_eq!(tick_all(scene.store.as_ref()).await, expected.len(), "{name}");
        let made: Vec<Timestamp> = jobs(&scene)
            .await
            .iter()
            .filter(|job| job.key.as_deref().and_then(schedule_of_key) == Some(&name))
            .filter_map(|job| job.nominal_at)
            .collect();
        assert_eq!(made, expected, "{name}");
        let after = view(&scene, &name).await;
        assert_eq!((after.fired, after.dropped), (expected.len() as i64, dropped), "{name}");
        assert_eq!(after.last_at, expected.last().copied(), "{name}");
        assert_eq!(after.next_at, Some(ticks[4] + PERIOD), "{name}");
    }
}

pub async fn a_paused_schedule_does_not_tick_and_goes_on_from_now(scene: Scene) {
    stand(&scene, &rare("h").misfire(Misfire::All { max: 9 }), periods_ago(&scene, 3).await).await;
    let seen = view(&scene, "h").await;
    assert!(scene.store.pause_schedule("h").await.unwrap());
    assert!(!scene.store.pause_schedule("h").await.unwrap(), "already paused");
    assert_eq!(tick_all(scene.store.as_ref()).await, 0);
    assert_eq!(scene.store.clock().await.unwrap().next_at, None);
    let now = scene.store.clock().await.unwrap().now;
    let tick = seen.tick(now).expect("the tick was not due");
    assert!(
        scene.store.tick_schedule(&tick).await.unwrap().is_none(),
        "the tick of a node that read the schedule before the pause is refused"
    );
    assert!(view(&scene, "h").await.paused_at.is_some() && view(&scene, "h").await.tick(now).is_none());
    scene.store.put_schedule(&rare("h"), Source::Operator).await.unwrap();
    assert!(view(&scene, "h").await.paused_at.is_some(), "putting the schedule again does not resume it");

    assert!(scene.store.resume_schedule("h").await.unwrap());
    assert!(!scene.store.resume_schedule("h").await.unwrap(), "already resumed");
    assert_eq!(tick_all(scene.store.as_ref()).await, 0, "ticks during the pause are dropped");
    assert!(view(&scene, "h").await.next_at.is_some_and(|next_at| next_at > now));
}

pub async fn run_now_leaves_the_ticks_as_they_are(scene: Scene) {
    scene.store.put_schedule(&rare("h").misfire(Misfire::Skip), Source::Operator).await.unwrap();
    scene.store.pause_schedule("h").await.unwrap();
    let before = view(&scene, "h").await;
    let first = job_of(scene.store.run_schedule_now("h", None).await.unwrap());
    let second = job_of(scene.store.run_schedule_now("h", None).await.unwrap());
    assert!(first.job != second.job && !first.duplicate && !second.duplicate);
    let row = scene.view(first.job).await.row;
    assert_eq!(row.key.as_deref().and_then(schedule_of_key), Some("h"));
    assert!(row.nominal_at.is_some(), "the nominal time is the time of the request");
    let after = view(&scene, "h").await;
    assert_eq!((after.next_at, after.last_at, after.fired), (before.next_at, None, 0));
    assert_eq!(scene.claim(10).await.len(), 2);
}

pub async fn run_now_that_is_repeated_makes_one_job(scene: Scene) {
    scene.store.put_schedule(&rare("h"), Source::Operator).await.unwrap();
    let asked = Some(Uuid::now_v7());
    let first = job_of(scene.store.run_schedule_now("h", asked).await.unwrap());
    let again = job_of(scene.store.run_schedule_now("h", asked).await.unwrap());
    assert_eq!((again.job, first.duplicate, again.duplicate), (first.job, false, true));
    let other = job_of(scene.store.run_schedule_now("h", Some(Uuid::now_v7())).await.unwrap());
    assert!(!other.duplicate && other.job != first.job);
    let changed = Schedule { makes: NewJob::new("another", &()).unwrap().into(), ..rare("h") };
    scene.store.put_schedule(&changed, Source::Operator).await.unwrap();
    let again = job_of(scene.store.run_schedule_now("h", asked).await.unwrap());
    assert_eq!(
        (again.job, again.duplicate),
        (first.job, true),
        "the schedule makes jobs of another kind now"
    );
}

pub async fn a_schedule_that_ticked_by_a_clock_that_was_ahead_is_moved_back_by_the_next_worker(scene: Scene) {
    let due = periods_ago(&scene, 0).await;
    for misfire in [Misfire::Skip, Misfire::Once] {
        stand(&scene, &rare(&misfire.to_string()).misfire(misfire), due).await;
    }
    let now = scene.store.clock().await.unwrap().now;
    for name in ["skip", "once"] {
        let ahead =
            view(&scene, name).await.tick(now + PERIOD * 10).expect("not due by the clock that is ahead");
        scene.store.tick_schedule(&ahead).await.unwrap().expect("the tick was refused");
        assert!(view(&scene, name).await.next_at > Some(now + PERIOD * 9));
    }
    let made = jobs(&scene).await.len();
    let (told, _heard) = mpsc::unbounded_channel();
    let worker = start(&scene.store, told).await;
    for name in ["skip", "once"] {
        wait::until("the next tick is due by the correct clock", || async {
            view(&scene, name).await.next_at == Some(due + PERIOD)
        })
        .await;
    }
    worker.shutdown().await;
    assert_eq!(jobs(&scene).await.len(), made, "no tick was repeated");
    // The job that was created ahead of time counts when its tick is due.
    let of_once = |job: &JobRow| job.key.as_deref().and_then(schedule_of_key) == Some("once");
    let made_ahead =
        jobs(&scene).await.into_iter().find(of_once).and_then(|job| job.nominal_at).expect("its job");
    assert!(scene.store.remove_schedule("once", Source::Operator).await.unwrap());
    stand(&scene, &rare("once"), made_ahead).await;
    let again = view(&scene, "once").await.tick(made_ahead).expect("due");
    assert_eq!(scene.store.tick_schedule(&again).await.unwrap().expect("the tick was refused").new_ones(), 0);
}

pub async fn a_worker_ticks_and_its_handler_knows_the_tick(scene: Scene) {
    let due = periods_ago(&scene, 0).await;
    let mut schedule = rare("h");
    schedule.makes = runtime::job().into();
    stand(&scene, &schedule, due).await;
    let (told, mut heard) = mpsc::unbounded_channel();
    let worker = start(&scene.store, told).await;
    let nominal_at =
        tokio::time::timeout(wait::LIMIT, heard.recv()).await.expect("timed out before the job ran");
    assert_eq!(nominal_at, Some(Some(due)));
    wait::until("the worker has counted the tick", || async { worker.stats().ticked == 1 }).await;

    // A schedule that is added while the worker runs is executed, too, and continues to tick.
    let mut second = Schedule::new("s", Spec::every(Duration::from_secs(1)).unwrap(), runtime::job());
    second.misfire = Misfire::All { max: 100 };
    scene.store.put_schedule(&second, Source::Operator).await.unwrap();
    let mut ticks = Vec::new();
    while ticks.len() < 3 {
        let heard =
            tokio::time::timeout(wait::LIMIT, heard.recv()).await.expect("timed out before the job ran");
        ticks.push(heard.flatten().expect("the job has no nominal time"));
    }
    ticks.sort_unstable();
    assert!(ticks.windows(2).all(|two| two[0] < two[1]), "no tick twice: {ticks:?}");
    scene.store.remove_schedule("s", Source::Operator).await.unwrap();
    worker.shutdown().await;
}

async fn start(store: &Arc<dyn Store>, told: mpsc::UnboundedSender<Option<Timestamp>>) -> milepost::Worker {
    runtime::builder(store.clone())
        .handle_kind(runtime::KIND, RetryPolicy::default(), move |context| {
            let told = told.clone();
            async move {
                told.send(context.nominal_at()).expect("the test has ended");
                Ok(Outcome::Done)
            }
        })
        .start()
        .await
        .expect("started")
}
