//! Events that are not delivered: retries, parking, dead letters and unavailable sinks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use milepost_core::event::Exhausted;
use milepost_testkit::wait;
use tokio::runtime::Handle;

use crate::common::script::Answer;
use crate::publishing::desk::{Desk, giving_up, options, up_to};

pub(crate) async fn an_event_that_fails_delays_only_its_aggregate(desk: Desk) {
    desk.emit_mixed(100, 1_000).await;
    desk.sink
        .answer(|e| if e.aggregate.id == "7" && e.sequence == 3 { Answer::Refuse } else { Answer::Take });
    let running = desk.run(options("s"));
    desk.until_taken(1_000 - 8).await;
    assert_eq!(desk.sink.firsts("7"), [1, 2], "no later event overtakes the failed one");
    wait::until("the aggregate is parked", || async { running.stats.view().parked_aggregates == 1 }).await;
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(1_000).await;
    assert_eq!(desk.sink.firsts("7"), up_to(10));
    wait::until("nothing is parked", || async { running.stats.view().parked_aggregates == 0 }).await;
    desk.emit("7", 1).await;
    desk.until_taken(1_001).await;
    running.stop().await;
    assert_eq!(desk.sink.taken().len(), 1_001);
}

pub(crate) async fn what_a_sink_has_no_time_for_is_neither_lost_nor_overtaken_nor_blamed(desk: Desk) {
    desk.emit_mixed(20, 400).await;
    desk.sink.answer(|e| if e.aggregate.id == "7" { Answer::Enough } else { Answer::Take });
    let running = desk.run(options("s"));
    desk.until_taken(400).await;
    let stats = running.stats.view();
    running.stop().await;
    assert_eq!(desk.sink.taken().len(), 400, "each event once");
    assert_eq!(stats.failed, 0);
    for (order, sequences) in desk.sink.firsts_of_all() {
        assert_eq!(sequences, up_to(sequences.len() as i64), "order {order}");
    }
}

pub(crate) async fn a_sink_that_refuses_every_event_uses_up_no_attempts_but_the_first(desk: Desk) {
    desk.emit_mixed(40, 40).await;
    desk.sink.answer(|_| Answer::Refuse);
    let running = desk.run(giving_up("s", 2, Exhausted::Halt));
    wait::until("the sink was tried often", || async { desk.sink.asked() > 60 }).await;
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(40).await;
    let failed = running.stats.view().failed;
    running.stop().await;
    assert!(failed <= 5, "{failed} attempts were used up");
}

pub(crate) async fn an_event_whose_fate_is_unknown_is_published_again_under_its_id(desk: Desk) {
    desk.emit("1", 2).await;
    desk.sink.answer(|_| Answer::TakeUnseen);
    let running = desk.run(options("s"));
    wait::until("the event was delivered twice", || async { desk.sink.taken().len() >= 2 }).await;
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(2).await;
    running.stop().await;
    let taken = desk.sink.taken();
    let ids: BTreeSet<_> = taken.iter().filter(|e| e.sequence == 1).map(|e| e.id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(desk.sink.firsts("1"), [1, 2]);
}

pub(crate) async fn an_aggregate_whose_attempts_are_spent_waits_for_a_person(desk: Desk) {
    desk.emit("1", 2).await;
    desk.emit("2", 2).await;
    desk.sink.answer(|e| if e.aggregate.id == "1" { Answer::Refuse } else { Answer::Take });
    let running = desk.run(giving_up("s", 3, Exhausted::Halt));
    desk.until_taken(2).await;
    wait::until("three attempts", || async { running.stats.view().failed == 3 }).await;
    // An event of another aggregate is published; the parked one is not retried.
    desk.emit("2", 1).await;
    desk.until_taken(3).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(running.stats.view().failed, 3);
    assert_eq!(running.stats.view().parked_aggregates, 1);
    running.stop().await;
}

pub(crate) async fn an_event_is_skipped_where_the_policy_says_so(desk: Desk) {
    desk.emit("1", 3).await;
    desk.sink.answer(|e| if e.sequence == 2 { Answer::Refuse } else { Answer::Take });
    let running = desk.run(giving_up("s", 2, Exhausted::SkipEvent));
    desk.until_taken(2).await;
    assert_eq!(desk.sink.firsts("1"), [1, 3]);
    assert_eq!(running.stats.view().skipped, 1);
    running.stop().await;
}

pub(crate) async fn an_event_becomes_a_dead_letter_where_the_policy_says_so(desk: Desk) {
    desk.emit("1", 3).await;
    desk.sink.answer(|e| if e.sequence == 2 { Answer::Refuse } else { Answer::Take });
    let running = desk.run(giving_up("s", 2, Exhausted::DeadLetter));
    desk.until_taken(2).await;
    assert_eq!(desk.sink.firsts("1"), [1, 3]);
    assert_eq!(running.stats.view().dead, 1);
    running.stop().await;
}

pub(crate) async fn no_event_is_sent_before_it_is_stored_that_the_one_before_is_dead(desk: Desk) {
    desk.emit("1", 4).await;
    let (store, runtime) = (desk.store.clone(), Handle::current());
    let too_early = Arc::new(AtomicUsize::new(0));
    let counted = too_early.clone();
    desk.sink.answer(move |event| {
        let dead = tokio::task::block_in_place(|| runtime.block_on(store.dead_events(None, None, 10)));
        match event.sequence {
            // By the loop that publishes pages, and by the one that retries.
            1 => Answer::Unacceptable,
            3 => Answer::Refuse,
            sequence => {
                let expected = usize::try_from(sequence / 2).unwrap();
                counted.fetch_add(usize::from(dead.unwrap().len() < expected), Ordering::Relaxed);
                Answer::Take
            }
        }
    });
    let running = desk.run(giving_up("s", 2, Exhausted::DeadLetter));
    desk.until_taken(2).await;
    running.stop().await;
    assert_eq!((desk.sink.firsts("1"), too_early.load(Ordering::Relaxed)), (vec![2, 4], 0));
}

pub(crate) async fn what_can_never_be_taken_is_a_dead_letter_at_once(desk: Desk) {
    desk.emit("1", 3).await;
    desk.sink.answer(|e| if e.sequence == 2 { Answer::Unacceptable } else { Answer::Take });
    let running = desk.run(options("s"));
    desk.until_taken(2).await;
    running.stop().await;
    assert_eq!((desk.sink.firsts("1"), desk.sink.asked()), (vec![1, 3], 3), "one attempt");
}

pub(crate) async fn a_sink_that_is_down_parks_nothing(desk: Desk) {
    desk.emit_mixed(50, 500).await;
    desk.sink.answer(|_| Answer::Down);
    let running = desk.run(options("s"));
    wait::until("the sink was called several times", || async { desk.sink.asked() >= 3 }).await;
    assert_eq!(running.stats.view().parked_aggregates, 0);
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(500).await;
    assert_eq!((running.stats.view().failed, running.stats.view().parked_aggregates), (0, 0));
    running.stop().await;
    assert_eq!(desk.sink.taken().len(), 500);
}

pub(crate) async fn a_sink_that_refuses_everything_parks_few(desk: Desk) {
    desk.emit_mixed(200, 1_000).await;
    // The sink is down from then on, so the number of parked aggregates does not depend on when the test reads it.
    let asked = AtomicUsize::new(0);
    desk.sink.answer(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        ..=205 => Answer::Refuse,
        _ => Answer::Down,
    });
    let running = desk.run(options("s"));
    wait::until("the sink was called again", || async { desk.sink.asked() > 205 }).await;
    let parked = running.stats.view().parked_aggregates;
    assert!(parked <= 20, "{parked} of 200 aggregates are parked");
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(1_000).await;
    running.stop().await;
    for (order, sequences) in desk.sink.firsts_of_all() {
        assert_eq!(sequences, up_to(5), "order {order}");
    }
}

pub(crate) async fn a_publisher_that_starts_during_an_outage_uses_up_no_attempts_of_parked_events(
    desk: Desk,
) {
    desk.emit_mixed(40, 80).await;
    desk.sink.answer(|_| Answer::Refuse);
    let first = desk.run(giving_up("s", 3, Exhausted::DeadLetter));
    wait::until("all aggregates are parked", || async { first.stats.view().parked_aggregates == 40 }).await;
    first.stop().await;
    let asked = desk.sink.asked();
    let second = desk.run(giving_up("s", 3, Exhausted::DeadLetter));
    wait::until("the sink was tried several times", || async { desk.sink.asked() > asked + 20 }).await;
    let stats = second.stats.view();
    assert!(
        stats.failed <= 5 && stats.dead == 0,
        "{} attempts were used, {} events are dead",
        stats.failed,
        stats.dead
    );
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(80).await;
    second.stop().await;
}

pub(crate) async fn more_refused_events_than_a_page_has_do_not_stop_the_others(desk: Desk) {
    desk.emit_of("bad", 60, 60).await;
    desk.emit_of("good", 5, 5).await;
    desk.sink.answer(|e| if e.aggregate.kind == "bad" { Answer::Refuse } else { Answer::Take });
    let mut options = giving_up("s", 2, Exhausted::DeadLetter);
    options.page.events_max = 10;
    let running = desk.run(options);
    desk.until_taken(5).await;
    wait::until("the refused events are dead letters", || async { running.stats.view().dead == 60 }).await;
    running.stop().await;
    let dead = desk.store.dead_events(None, None, 100).await.unwrap();
    assert!(dead.iter().all(|event| event.deliveries == 2), "a probe uses no attempt");
}

pub(crate) async fn a_receiver_that_wants_no_more_pauses_the_subscription(desk: Desk) {
    desk.emit("1", 1).await;
    desk.sink.answer(|_| Answer::Gone);
    let running = desk.run(options("s"));
    wait::until("the publisher holds no slots", || async {
        desk.sink.asked() > 0 && running.stats.view().slots == 0
    })
    .await;
    desk.sink.answer(|_| Answer::Take);
    let other = desk.run(options("s"));
    desk.emit("1", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(desk.sink.taken().len(), 0);
    running.stop().await;
    other.stop().await;
}

pub(crate) async fn what_is_emitted_for_a_parked_aggregate_waits_behind(desk: Desk) {
    desk.emit("1", 1).await;
    desk.sink.answer(|e| if e.aggregate.id == "1" { Answer::Refuse } else { Answer::Take });
    let running = desk.run(options("s"));
    wait::until("the aggregate is parked", || async { running.stats.view().parked_aggregates == 1 }).await;
    for _ in 0..150 {
        desk.emit("1", 2).await;
    }
    desk.emit("2", 1).await;
    desk.until_taken(1).await;
    // Another publisher must respect the parked aggregate as well.
    running.stop().await;
    let running = desk.run(options("s"));
    desk.emit("1", 2).await;
    desk.emit("2", 1).await;
    desk.until_taken(2).await;
    assert!(desk.sink.firsts("1").is_empty());
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(305).await;
    running.stop().await;
    assert_eq!(desk.sink.firsts("1"), up_to(303));
}
