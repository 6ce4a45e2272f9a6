//! Schedules on four worker processes, one of which is frozen and resumed repeatedly.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::precedence::Over;
use milepost_core::schedule::{Misfire, Schedule, Source, Spec, schedule_of_key};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::wait;
use serde_json::json;

const ZONES: [&str; 3] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
/// Number of schedules that tick every second, so that a frozen process is frozen during their ticks.
const BUSY: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tick_has_one_job_on_postgres() {
    each_tick_has_one_job(&PostgresHome::fresh().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tick_has_one_job_on_sqlite() {
    each_tick_has_one_job(&SqliteHome::fresh().await).await;
}

async fn each_tick_has_one_job(home: &dyn Home) {
    let store = home.store();
    let now = store.clock().await.unwrap().now;
    let mut expected = BTreeMap::new();
    for (schedule, ticks) in around_changes_of_the_clocks(now) {
        store.write_schedule(&schedule, Source::Operator, ticks.first().copied(), Over::Any).await.unwrap();
        expected.insert(schedule.name, ticks);
    }
    let began = put_busy_schedules(store.as_ref()).await;

    let program = env!("CARGO_BIN_EXE_conformance-worker");
    let mut workers = [0; 4].map(|_| Process::start(program, &home.address(), Settings::default()));
    for victim in [0, 1, 2, 3, 0] {
        let ticked = workers[victim].words().stats.ticked;
        workers[victim].until("the worker processes ticks", |words| words.stats.ticked >= ticked + 5).await;
        workers[victim].pause().await;
        // On a SQLite file, a process that is frozen during a write blocks the others.
        if home.is_writable().await {
            until_others_tick(&workers, victim).await;
        }
        workers[victim].revive();
    }
    until_caught_up(store.as_ref()).await;
    for (number, first) in began.into_iter().enumerate() {
        store.pause_schedule(&busy(number)).await.unwrap();
        let last = store.schedule(&busy(number)).await.unwrap().unwrap().last_at.unwrap();
        let seconds = first.as_second()..=last.as_second();
        expected.insert(busy(number), seconds.map(|s| Timestamp::from_second(s).unwrap()).collect());
    }

    assert_eq!(jobs_by_schedule(store.as_ref()).await, expected);
    let ticks: usize = expected.values().map(Vec::len).sum();
    wait::until("the processes have counted each tick once", || async {
        let ticked = workers.iter().map(|worker| worker.words().stats.ticked);
        ticked.sum::<u64>() == ticks as u64
    })
    .await;
    wait::until("all jobs have succeeded", || async {
        let counts = store.count_by_state().await.unwrap();
        counts.iter().all(|(state, count)| *state == JobState::Succeeded || *count == 0)
    })
    .await;
}

/// Returns schedules whose ticks are on the days of the last two clock changes, with these ticks.
fn around_changes_of_the_clocks(now: Timestamp) -> Vec<(Schedule, Vec<Timestamp>)> {
    let mut schedules = Vec::new();
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        for change in zone.preceding(now).take(2) {
            let day = change.timestamp().to_zoned(zone.clone()).date();
            for times in ["*/15 *", "30 2", "45 1", "*/10 1-3"] {
                let expression = format!("{times} {} {} *", day.day(), day.month());
                let spec = Spec::cron(&expression, name).unwrap();
                let from = change.timestamp() - SignedDuration::from_hours(30);
                let ticks = std::iter::successors(spec.next_after(from), |tick| spec.next_after(*tick));
                let ticks: Vec<Timestamp> = ticks.take_while(|tick| *tick <= now).collect();
                assert!(!ticks.is_empty() && ticks.len() <= 100, "{expression}: {ticks:?}");
                let name = format!("{expression} {name}");
                schedules.push((schedule(&name, spec), ticks));
            }
        }
    }
    schedules
}

fn schedule(name: &str, spec: Spec) -> Schedule {
    Schedule::new(name, spec, NewJob::new("test.sleep", &json!({})).unwrap())
        .misfire(Misfire::All { max: 1000 })
}

fn busy(number: usize) -> String {
    format!("busy {number}")
}

/// Stores the busy schedules. Returns the first tick of each.
async fn put_busy_schedules(store: &dyn Store) -> Vec<Timestamp> {
    let mut first = Vec::new();
    for number in 0..BUSY {
        let every_second = Spec::every(Duration::from_secs(1)).unwrap();
        store.put_schedule(&schedule(&busy(number), every_second), Source::Operator).await.unwrap();
        first.push(store.schedule(&busy(number)).await.unwrap().unwrap().next_at.unwrap());
    }
    first
}

/// Waits until the other processes have executed as many ticks as there are busy schedules.
async fn until_others_tick(workers: &[Process; 4], victim: usize) {
    let count = || -> u64 {
        let others = workers.iter().enumerate().filter(|(number, _)| *number != victim);
        others.map(|(_, worker)| worker.words().stats.ticked).sum()
    };
    let before = count();
    wait::until("the others tick without the frozen one", || async { count() >= before + BUSY as u64 }).await;
}

/// Waits until all ticks that are due now have been executed, and every busy schedule has ticked several times.
async fn until_caught_up(store: &dyn Store) {
    wait::until("every busy schedule has ticked", || async {
        let schedules = store.schedules().await.unwrap();
        schedules.iter().filter(|view| view.schedule.name.starts_with("busy")).all(|view| view.fired >= 3)
    })
    .await;
    let then = store.clock().await.unwrap().now;
    wait::until("every tick that was due has its job", || async {
        store.clock().await.unwrap().next_at.is_some_and(|next_at| next_at > then)
    })
    .await;
}

/// Returns the nominal times of all jobs by schedule, in order. A time occurs once for each of its jobs.
async fn jobs_by_schedule(store: &dyn Store) -> BTreeMap<String, Vec<Timestamp>> {
    let filter = JobFilter { limit: 1_000_000, ..JobFilter::default() };
    let jobs = store.jobs(&filter).await.unwrap();
    let ids: BTreeSet<_> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), jobs.len());
    let mut found: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    for job in jobs {
        let schedule = schedule_of_key(job.key.as_deref().unwrap()).unwrap().to_owned();
        found.entry(schedule).or_default().push(job.nominal_at.unwrap());
    }
    found.values_mut().for_each(|ticks| ticks.sort_unstable());
    found
}
