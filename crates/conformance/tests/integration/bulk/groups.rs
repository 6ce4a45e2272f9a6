//! Runs in groups: one at a time and in order, and other work at the same time.

use std::time::Duration;

use milepost::bulk::{BulkFilter, Definition, Load, SettingsChange, Sizing};
use milepost::{JobId, JobState, NewJob, Outcome, Priority, RetryPolicy};
use milepost_testkit::{notes, wait};

use crate::bulk::members::{Gate, Members};

fn of_group(name: &str) -> Definition {
    let sizing = Sizing { rows_min: 10, rows_max: 10, ..Sizing::default() };
    Definition { group: "push".to_owned(), sizing, ..notes::definition(name, 10) }
}

fn priority(level: u8) -> Priority {
    Priority::try_from(level).unwrap()
}

/// Returns the waiting runs in the order of the list.
async fn queue(members: &Members) -> Vec<JobId> {
    let filter = BulkFilter { group: Some("push".to_owned()), ..BulkFilter::default() };
    let views = members.store().bulks(&filter).await.unwrap();
    let waiting: Vec<_> = views.into_iter().filter(|view| view.state == JobState::Blocked).collect();
    let places: Vec<_> = waiting.iter().map(|view| view.next.unwrap()).collect();
    assert_eq!(places, (1..=places.len() as u32).collect::<Vec<_>>(), "{waiting:#?}");
    waiting.into_iter().map(|view| view.id).collect()
}

pub(crate) async fn runs_of_a_group_go_one_at_a_time_by_priority_and_then_by_time(members: Members) {
    members.add(0..50).await;
    let gate = Gate::closed();
    let bulks: Vec<_> =
        ["a", "b", "c"].map(|name| members.notify_as(of_group(name)).throttle(gate.clone())).to_vec();
    for bulk in &bulks {
        members.store().put_bulk(bulk.definition(), milepost::Source::Operator).await.map(drop).unwrap();
    }
    let started = async |bulk: usize, level: u8| {
        let definition = bulks[bulk].definition();
        let job = definition.direct(NewJob::new("", &serde_json::json!({})).unwrap());
        members.store().start_bulk(&NewJob { priority: priority(level), ..job }).await.unwrap().job
    };
    let first = started(0, 3).await;
    let second = started(1, 3).await;
    let third = started(2, 3).await;
    let urgent = started(0, 1).await;
    let idle = started(1, 4).await;
    let last = started(2, 4).await;
    assert_eq!(queue(&members).await, [urgent, second, third, idle, last]);
    members
        .store()
        .set_bulk(last, &SettingsChange { priority: Some(priority(2)), ..SettingsChange::default() })
        .await
        .unwrap();
    assert_eq!(queue(&members).await, [urgent, last, second, third, idle]);

    let workers =
        [0, 1].map(|_| bulks.iter().fold(members.worker(), |worker, bulk| worker.bulk(bulk.clone())));
    let mut running = Vec::new();
    for worker in workers {
        running.push(worker.start().await.unwrap());
    }
    members.until(first, "the bulk job is held", |view| view.throttle.is_some()).await;
    assert_eq!(queue(&members).await.len(), 5, "the other runs wait");
    gate.set(false);
    let order = [first, urgent, last, second, third, idle];
    for job in order {
        members.until_state(job, JobState::Succeeded).await;
        members.assert_once_each(job, 50).await;
    }
    assert_eq!(members.turns(&order).await, order, "one run at a time, and in this order");
    for worker in running {
        worker.shutdown().await;
    }
}

pub(crate) async fn ten_thousand_small_jobs_flow_while_a_run_works(members: Members) {
    members.add(0..10_000).await;
    // So slow that it is running during the whole test.
    let definition = Definition {
        sizing: Sizing { rows_min: 50, rows_max: 200, ..Sizing::default() },
        load: Load { rows_per_s: Some(10.0), duty: 1.0 },
        ..notes::definition("large", 200)
    };
    let bulk = members.notify_as(definition);
    let job = members.start(&bulk).await;
    let worker =
        members
            .worker()
            .bulk(bulk)
            .handle_kind("small", RetryPolicy::fixed(Duration::ZERO), |_| async { Ok(Outcome::Done) });
    let worker = worker.start().await.unwrap();
    members.until(job, "the run processes chunks", |view| view.counts.chunks > 1).await;
    for _ in 0..10 {
        members.scene.enqueue_many(1_000, "small", serde_json::json!({})).await;
    }
    wait::until_within(Duration::from_secs(600), "all small jobs have ended", || async {
        members.home.count("select count(*) from milepost.ended e where e.state = 'succeeded'").await
            == 10_000
    })
    .await;
    let view = members.view(job).await;
    assert_eq!(view.state, JobState::Running, "the run continues: {view:#?}");
    let at = view.counts.chunks;
    members.until(job, "the run processes more chunks", |view| view.counts.chunks > at).await;
    members.operate(job, milepost::Verb::Abort).await;
    members.until_state(job, JobState::Aborted).await;
    worker.shutdown().await;
}
