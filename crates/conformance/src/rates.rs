//! Rates of kinds and groups, checked against the start times in the history.

use std::time::Duration;

use jiff::Timestamp;
use milepost::{Outcome, RetryPolicy, Worker};
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::job::{NewJob, Priority};
use milepost_core::limit::{Limit, Rate, Source, Target};
use milepost_core::listing::Waiting;
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use super::runtime;
use milepost_testkit::pulse::{Pulse, STALL};
use milepost_testkit::scene::{KIND, Scene, retry};
use milepost_testkit::wait;

/// So slow that no token is refilled during a test.
const HOURLY: f64 = 1.0 / 3600.0;

/// The bucket holds the tokens of two seconds: if the machine stalls for up to two seconds, no token is lost.
const STEADY: Rate = Rate::new(60.0, 120);

async fn put(scene: &Scene, limit: Limit) {
    scene.store.put_limit(&limit, Source::Operator).await.unwrap();
}

async fn tokens(scene: &Scene, name: &str) -> f64 {
    scene.store.fill_groups().await.unwrap();
    let limits = scene.store.limits().await.unwrap();
    let view =
        limits.into_iter().find(|view| view.limit.target.name() == name).expect("the limit does not exist");
    view.tokens.expect("the limit has no rate")
}

fn priority(number: u8) -> Priority {
    Priority::try_from(number).unwrap()
}

pub async fn a_claim_takes_no_more_of_a_kind_than_its_tokens(scene: Scene) {
    put(&scene, Limit::kind(KIND, Rate::new(HOURLY, 5))).await;
    for number in 0..20 {
        scene.enqueue(Scene::job().priority(priority(1 + number % 4))).await;
    }
    let mut taken = scene.claim(3).await;
    while let more @ [_, ..] = scene.claim(50).await.as_slice() {
        taken.extend_from_slice(more);
    }
    assert_eq!(taken.len(), 5);
    assert!(taken.iter().all(|job| job.priority == priority(1)), "higher priorities go first");
    assert!(tokens(&scene, KIND).await < 1.0);
}

pub async fn a_kind_that_is_let_go_faster_does_not_wait_by_its_old_rate(scene: Scene) {
    put(&scene, Limit::kind(KIND, Rate::new(HOURLY, 1))).await;
    for _ in 0..3 {
        scene.enqueue(Scene::job()).await;
    }
    assert_eq!(scene.claim(10).await.len(), 1);
    put(&scene, Limit::kind(KIND, Rate::new(50.0, 1))).await;
    for _ in 0..2 {
        wait::until("the token is refilled", || async { !scene.claim(10).await.is_empty() }).await;
    }
    put(&scene, Limit::kind(KIND, Rate::new(HOURLY, 5))).await;
    assert!(tokens(&scene, KIND).await <= 5.0, "the change adds no tokens");
}

pub async fn a_burst_that_is_lowered_and_raised_again_adds_no_tokens(scene: Scene) {
    let limit = |burst| Limit::kind(KIND, Rate::new(HOURLY, burst));
    put(&scene, limit(10)).await;
    for _ in 0..20 {
        scene.enqueue(Scene::job()).await;
    }
    assert_eq!(scene.claim(6).await.len(), 6);
    for burst in [1, 10, 2, 100, 10] {
        put(&scene, limit(burst)).await;
        assert!(tokens(&scene, KIND).await < 4.5, "burst {burst}");
    }
    assert!(scene.claim(20).await.len() <= 1, "only the token that was left after the lowest burst");
}

/// Waits until this number of jobs has started, and checks that no more can start.
async fn wait_for_starts(scene: &Scene, wanted: usize) {
    let mut started = 0;
    for _ in 0..600 {
        scene.store.fill_groups().await.unwrap();
        started += scene.claim(20).await.len();
        if started >= wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.store.fill_groups().await.unwrap();
    assert_eq!(started + scene.claim(20).await.len(), wanted);
}

pub async fn a_group_keeps_its_missing_tokens_when_its_rate_changes(scene: Scene) {
    let class = |rate| Limit::group("tenant:*").rate(rate);
    put(&scene, class(Rate::new(HOURLY, 10))).await;
    for _ in 0..20 {
        scene.enqueue(Scene::job().group("tenant:a")).await;
    }
    wait_for_starts(&scene, 10).await;
    let own = |rate| Limit::group("tenant:a").rate(rate);
    for limit in
        [class(Rate::new(HOURLY / 100.0, 10)), own(Rate::new(HOURLY / 500.0, 10)), own(Rate::new(HOURLY, 3))]
    {
        put(&scene, limit).await;
        scene.store.fill_groups().await.unwrap();
        assert_eq!(scene.claim(20).await.len(), 0);
    }
    assert!(tokens(&scene, "tenant:a").await < -6.9, "ten starts, and a burst of three");
    put(&scene, class(Rate::new(HOURLY / 100.0, 11))).await;
    scene.store.remove_limit(&Target::Group("tenant:a".into()), Source::Operator).await.unwrap();
    wait_for_starts(&scene, 1).await;
}

pub async fn a_kind_without_tokens_holds_up_nobody_else(scene: Scene) {
    put(&scene, Limit::kind(KIND, Rate::new(HOURLY, 1))).await;
    let mut jobs: Vec<NewJob> = (0..500).map(|_| Scene::job().priority(priority(1))).collect();
    jobs.extend((0..30).map(|_| NewJob::new("other", &()).unwrap().priority(priority(4))));
    scene.store.enqueue_many(&jobs).await.unwrap();
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.extend(scene.claim(10).await);
    }
    let limited = taken.iter().filter(|job| job.kind == KIND).count();
    assert_eq!((taken.len(), limited), (31, 1));
    scene.store.remove_limit(&Target::Kind(KIND.into()), Source::Operator).await.unwrap();
    assert_eq!(
        scene.claim(500).await.len(),
        499,
        "all waiting jobs are claimed immediately after the limit is removed"
    );
}

/// Returns two workers that look for work only when they receive a notification.
async fn two_workers(scene: &Scene) -> [Worker; 2] {
    let start = || async {
        runtime::builder(scene.store.clone())
            .options(|options| options.poll_interval = Duration::from_secs(600))
            .handle_kind(runtime::KIND, RetryPolicy::default(), |_| async { Ok(Outcome::Done) })
            .start()
            .await
            .unwrap()
    };
    [start().await, start().await]
}

async fn enqueue(scene: &Scene, jobs: Vec<NewJob>) -> Vec<JobId> {
    scene.store.enqueue_many(&jobs).await.unwrap().iter().map(|enqueued| enqueued.job).collect()
}

/// Returns the time at which each job first reached a state, in order.
async fn times(scene: &Scene, jobs: &[JobId], state: JobState) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for &job in jobs {
        let history = scene.history(job).await;
        times.push(
            history.iter().find(|entry| entry.to == state).expect("the job was never in this state").at,
        );
    }
    times.sort();
    times
}

/// Asserts that no period had more starts than burst and rate allow, and that the rate was reached. The bucket collects tokens while the machine
/// stalls, so some period in the second half must make up for a stall. `stall`: the longest stall of the machine; with a long one the rate may not be
/// reached.
fn assert_rate_kept(starts: &[Timestamp], rate: Rate, stall: Duration) {
    let seconds = |from: usize, to: usize| starts[to].duration_since(starts[from]).as_secs_f64();
    for from in 0..starts.len() {
        for to in from..starts.len() {
            // SQLite stores whole milliseconds. A start has the time at which its transaction began, which can wait for the lock of a limit as
            // long as the machine stalls.
            let spread = 0.001 + stall.as_secs_f64();
            let most = f64::from(rate.burst) + (seconds(from, to) + spread) * rate.per_second;
            let count = (to - from + 1) as f64;
            assert!(count <= most, "{count} starts in {} s", seconds(from, to));
        }
    }
    let reached = (starts.len() / 2..starts.len())
        .map(|to| ((to + 1) as f64 - f64::from(rate.burst)) / seconds(0, to))
        .fold(0.0, f64::max);
    assert!(
        reached >= 0.95 * rate.per_second || stall > STALL,
        "only {reached} starts per second; the longest query took {stall:?}"
    );
}

pub async fn the_rate_of_a_kind_is_kept_by_two_workers(scene: Scene) {
    put(&scene, Limit::kind(runtime::KIND, STEADY)).await;
    let workers = two_workers(&scene).await;
    let pulse = Pulse::of_commits(scene.store.clone(), scene.worker);
    let jobs = enqueue(&scene, (0..330).map(|_| runtime::job()).collect()).await;
    scene.assert_all_succeed(&jobs).await;
    let stall = pulse.slowest();
    assert_rate_kept(&times(&scene, &jobs, JobState::Running).await, STEADY, stall);
    for worker in workers {
        worker.shutdown().await;
    }
}

pub async fn the_rate_of_a_group_is_kept_by_two_workers(scene: Scene) {
    put(&scene, Limit::group("t:*").rate(STEADY)).await;
    let workers = two_workers(&scene).await;
    let pulse = Pulse::of_commits(scene.store.clone(), scene.worker);
    let of = |group: &'static str| (0..330).map(move |_| runtime::job().group(group));
    let jobs = enqueue(&scene, of("t:1").chain(of("t:2")).collect()).await;
    scene.assert_all_succeed(&jobs).await;
    let stall = pulse.slowest();
    for group in jobs.chunks(330) {
        assert_rate_kept(&times(&scene, group, JobState::Running).await, STEADY, stall);
    }
    for worker in workers {
        worker.shutdown().await;
    }
}

pub async fn the_rate_of_a_group_is_kept_after_a_time_without_claims(scene: Scene) {
    let rate = Rate::new(20.0, 2);
    put(&scene, Limit::group("g").slots(50).rate(rate)).await;
    let jobs = enqueue(&scene, (0..30).map(|_| runtime::job().group("g")).collect()).await;
    // Tokens for ten more jobs would be refilled in this time.
    let until = tokio::time::Instant::now() + Duration::from_millis(500);
    while tokio::time::Instant::now() < until {
        scene.store.fill_groups().await.unwrap();
        assert!(the_holders(&scene, "g").await <= 2, "more jobs have slots than tokens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let workers = two_workers(&scene).await;
    scene.assert_all_succeed(&jobs).await;
    // The rate need not be reached: the bucket holds the tokens of 100 ms only.
    assert_rate_kept(&times(&scene, &jobs, JobState::Running).await, rate, Duration::MAX);
    for worker in workers {
        worker.shutdown().await;
    }
}

async fn the_holders(scene: &Scene, name: &str) -> i64 {
    let limits = scene.store.limits().await.unwrap();
    limits.iter().find(|view| view.limit.target.name() == name).expect("the limit does not exist").holders
}

pub async fn a_canceled_start_is_not_refunded(scene: Scene) {
    put(&scene, Limit::group("g").rate(Rate::new(HOURLY, 2))).await;
    let jobs = enqueue(&scene, (0..4).map(|_| Scene::job().group("g")).collect()).await;
    scene.store.fill_groups().await.unwrap();
    assert!((-0.1..0.1).contains(&tokens(&scene, "g").await), "both tokens are reserved");
    scene.operate(jobs[0], Operation::new(Verb::Cancel)).await.unwrap();
    assert_eq!(scene.claim(10).await.len(), 1, "the token of the canceled job is not refunded");
    assert!((-0.1..0.1).contains(&tokens(&scene, "g").await));
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(jobs[2]).await, JobState::Blocked);
}

pub async fn a_job_that_is_snoozed_keeps_no_token_from_others(scene: Scene) {
    put(&scene, Limit::group("g").rate(Rate::new(1.0, 1))).await;
    let jobs = enqueue(&scene, (0..2).map(|_| Scene::job().group("g")).collect()).await;
    scene.store.fill_groups().await.unwrap();
    let snooze = Operation { delay: Duration::from_secs(3600), ..Operation::new(Verb::Snooze) };
    scene.operate(jobs[0], snooze).await.unwrap();
    wait::until("the other job starts", || async {
        scene.store.fill_groups().await.unwrap();
        scene.claim(10).await.iter().any(|job| job.run.job == jobs[1])
    })
    .await;
}

pub async fn slots_and_rate_hold_together(scene: Scene) {
    put(&scene, Limit::group("g").slots(2).rate(Rate::new(HOURLY, 3))).await;
    let jobs = enqueue(&scene, (0..5).map(|_| Scene::job().group("g")).collect()).await;
    scene.store.fill_groups().await.unwrap();
    let held = scene.claim(10).await;
    assert_eq!(held.len(), 2, "the number of slots");
    let mut started = held.len();
    for job in held {
        scene.finish(&job, End::Succeed { result: None }).await;
        scene.store.fill_groups().await.unwrap();
        started += scene.claim(10).await.len();
    }
    assert_eq!(started, 3, "the number of tokens");
    for job in jobs {
        scene.assert_history_folds(job).await;
    }
}

pub async fn workers_wake_when_tokens_come_back(scene: Scene) {
    let rate = Rate::new(4.0, 1);
    put(&scene, Limit::kind(runtime::KIND, rate)).await;
    let workers = two_workers(&scene).await;
    let jobs = enqueue(&scene, (0..5).map(|_| runtime::job()).collect()).await;
    scene.assert_all_succeed(&jobs).await;
    scene.store.remove_limit(&Target::Kind(runtime::KIND.into()), Source::Operator).await.unwrap();
    put(&scene, Limit::group("g").slots(1).rate(Rate::new(10.0, 2))).await;
    let pulse = Pulse::of_commits(scene.store.clone(), scene.worker);
    let jobs = enqueue(&scene, (0..30).map(|_| runtime::job().group("g")).collect()).await;
    scene.assert_all_succeed(&jobs).await;
    let stall = pulse.slowest();
    // If groups were only maintained once a second, two jobs would be released each time. With a wake-up for each job, ten jobs take one second.
    let released = times(&scene, &jobs, JobState::Pending).await;
    let fastest =
        released.windows(10).map(|ten| ten[9].duration_since(ten[0]).as_secs_f64()).fold(f64::MAX, f64::min);
    assert!(
        fastest < 1.6 || stall > STALL,
        "ten releases took at least {fastest} s; the longest query took {stall:?}"
    );
    for worker in workers {
        worker.shutdown().await;
    }
}

pub async fn a_retry_counts_as_a_start_of_its_group(scene: Scene) {
    put(&scene, Limit::group("g").rate(Rate::new(HOURLY, 4))).await;
    scene.enqueue(Scene::job().group("g")).await;
    assert!(tokens(&scene, "g").await < 4.0, "the release uses a token");
    for end in [retry(Duration::ZERO), End::Yield { delay: Duration::ZERO, note: String::new() }] {
        let job = scene.claim(1).await.remove(0);
        scene.finish(&job, end).await;
    }
    let left = tokens(&scene, "g").await;
    assert!((0.9..1.1).contains(&left), "{left} tokens are left of 4 after 3 starts");
    for _ in 0..2 {
        let job = scene.claim(1).await.remove(0);
        scene.finish(&job, retry(Duration::ZERO)).await;
    }
    let left = tokens(&scene, "g").await;
    assert!(
        (-1.1..-0.9).contains(&left),
        "{left} tokens: a retry is allowed, and the number of tokens becomes negative"
    );
    let late = scene.enqueue(Scene::job().group("g")).await;
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(late).await, JobState::Blocked);
}

pub async fn an_operators_release_does_not_wait_for_the_rate_but_counts(scene: Scene) {
    put(&scene, Limit::group("g").rate(Rate::new(HOURLY, 1))).await;
    scene.enqueue(Scene::job().group("g")).await;
    scene.store.fill_groups().await.unwrap();
    let late = scene.enqueue(Scene::job().group("g")).await;
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(late).await, JobState::Blocked);
    scene.operate(late, Operation::new(Verb::Release)).await.unwrap();
    assert_eq!(scene.state(late).await, JobState::Pending);
    scene.assert_history_folds(late).await;
    let left = tokens(&scene, "g").await;
    assert!((-1.1..-0.9).contains(&left), "{left}");
}

pub async fn a_job_says_that_it_waits_for_a_rate(scene: Scene) {
    let waits = async |job: JobId| scene.view(job).await.waiting_for;
    put(&scene, Limit::kind(KIND, Rate::new(HOURLY, 1))).await;
    let (first, second) = (scene.enqueue(Scene::job()).await, scene.enqueue(Scene::job()).await);
    assert_eq!(waits(second).await, Some(Waiting::Turn));
    assert_eq!(scene.claim(10).await[0].run.job, first);
    let waiting = waits(second).await;
    assert!(
        matches!(&waiting, Some(Waiting::Rate { target, until })
        if *target == Target::Kind(KIND.into()) && *until > Timestamp::now()),
        "{waiting:?}"
    );

    put(&scene, Limit::group("g").slots(2).rate(Rate::new(HOURLY, 1))).await;
    let other = || NewJob::new("other", &()).unwrap().group("g");
    let (_, second) = (scene.enqueue(other()).await, scene.enqueue(other()).await);
    scene.store.fill_groups().await.unwrap();
    assert_eq!(waits(second).await, Some(Waiting::Reserved { group: "g".into(), jobs: 1 }));
    assert_eq!(scene.claim(10).await.len(), 1);
    scene.store.fill_groups().await.unwrap();
    let waiting = waits(second).await;
    assert!(
        matches!(&waiting, Some(Waiting::Rate { target, until })
        if *target == Target::Group("g".into()) && *until > Timestamp::now()),
        "{waiting:?}"
    );
}

pub async fn a_rate_that_is_removed_lets_everybody_go(scene: Scene) {
    put(&scene, Limit::group("g").rate(Rate::new(HOURLY, 1))).await;
    enqueue(&scene, (0..5).map(|_| Scene::job().group("g")).collect()).await;
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.claim(10).await.len(), 1);
    put(&scene, Limit::group("g").slots(4)).await;
    wait::until("the free slots are assigned", || async {
        scene.store.fill_groups().await.unwrap();
        scene.claim(10).await.len() == 3
    })
    .await;
    let limits = scene.store.limits().await.unwrap();
    assert_eq!((limits[0].holders, limits[0].waiting, limits[0].tokens), (4, 1, None));
}
