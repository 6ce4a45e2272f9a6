//! Several publishers of one subscription.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::event::{Outcome, PageSize};
use milepost_core::port::LogReader;
use milepost_testkit::wait;
use tokio::net::TcpListener;

use crate::common;
use crate::common::script::{Answer, Script};
use crate::publishing::desk::{ALL, Desk, Running, options, up_to};

pub(crate) async fn several_publishers_publish_everything_once_and_in_order(desk: Desk) {
    let running: Vec<_> = (0..3).map(|_| desk.run(options("s"))).collect();
    for round in 1..=10 {
        desk.emit_mixed(41, 300).await;
        desk.until_taken(round * 300).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for one in running {
        one.stop().await;
    }
    assert_eq!(desk.sink.taken().len(), 3_000, "no duplicates when slots change the owner");
    for (order, sequences) in desk.sink.firsts_of_all() {
        assert_eq!(sequences, up_to(sequences.len() as i64), "order {order}");
    }
}

pub(crate) async fn what_a_silent_publisher_held_is_taken_over(desk: Desk) {
    let mut short = options("s");
    short.lease = Duration::from_secs(3);
    let dying = desk.run(short);
    desk.emit_mixed(20, 100).await;
    desk.until_taken(100).await;
    dying.kill();
    desk.emit_mixed(20, 100).await;
    let next = desk.run(options("s"));
    desk.until_taken(200).await;
    assert!(next.stats.view().taken_over > 0);
    next.stop().await;
    assert_eq!(desk.sink.firsts("3"), up_to(10));
}

pub(crate) async fn a_publisher_that_was_taken_for_dead_moves_nothing(desk: Desk) {
    desk.emit_mixed(20, 100).await;
    let (_, mut paused) = desk.reader("s", Duration::from_millis(100)).await;
    paused.balance().await.unwrap();
    assert_eq!(paused.page(ALL).await.unwrap().events.len(), 100);
    let (_, mut next) = desk.reader("s", Duration::from_secs(60)).await;
    take_over(next.as_mut()).await;
    // The paused publisher resumes and reports that its whole page was published.
    paused.commit(&Outcome::default()).await.unwrap();
    assert!(paused.page(ALL).await.unwrap().events.is_empty(), "the reader holds no slots any more");
    assert_eq!(next.page(ALL).await.unwrap().events.len(), 100, "the position was not moved");
}

/// The secret of a webhook.
const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Balances until the reader has acquired the slots of a silent publisher.
async fn take_over(reader: &mut dyn LogReader) {
    let began = Instant::now();
    while reader.balance().await.unwrap().taken_over == 0 {
        assert!(began.elapsed() < wait::LIMIT, "no slots were taken over");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn what_was_not_committed_comes_again(desk: Desk) {
    desk.emit_mixed(20, 100).await;
    let (_, mut reader) = desk.reader("s", Duration::from_secs(60)).await;
    reader.balance().await.unwrap();
    let page = reader.page(ALL).await.unwrap();
    let again = reader.page(ALL).await.unwrap();
    assert_eq!((page.events.len(), again.events.len()), (100, 100));
    let untried = again.events[90..].iter().map(|event| event.id).collect();
    reader.commit(&Outcome { untried, ..Outcome::default() }).await.unwrap();
    let rest = reader.page(ALL).await.unwrap();
    for event in &again.events[90..] {
        assert!(
            rest.events.iter().any(|e| e.id == event.id),
            "events that were not attempted are read again"
        );
    }
    assert!(rest.events.len() < 100, "not all events are read again");
    reader.commit(&Outcome::default()).await.unwrap();
    assert!(reader.page(ALL).await.unwrap().events.is_empty());
}

pub(crate) async fn a_position_in_hand_is_written_down_by_the_next_commit(desk: Desk) {
    desk.emit_mixed(20, 100).await;
    let (_, mut reader) = desk.reader("s", Duration::from_millis(100)).await;
    reader.balance().await.unwrap();
    for _ in 0..4 {
        let page = reader.page(PageSize { events_max: 1, ..ALL }).await.unwrap();
        assert!(!page.events.is_empty());
        assert!(reader.pass(), "the page has events in progress");
    }
    reader.commit(&Outcome::default()).await.unwrap();
    let page = reader.page(ALL).await.unwrap();
    let rest = page.events.len();
    assert!((1..100).contains(&rest), "{rest} events are left");
    // The reader has passed these events but not stored the position: the next publisher reads exactly these again.
    assert!(reader.pass());
    let (_, mut next) = desk.reader("s", Duration::from_secs(60)).await;
    take_over(next.as_mut()).await;
    assert_eq!(next.page(ALL).await.unwrap().events.len(), rest);
    reader.commit(&Outcome::default()).await.unwrap();
    assert!(reader.page(ALL).await.unwrap().events.is_empty(), "the reader holds no slots any more");
}

pub(crate) async fn a_publisher_that_stops_gives_its_slots_back_at_once(desk: Desk) {
    let mut long = options("s");
    long.lease = Duration::from_secs(600);
    let first = desk.run(long.clone());
    desk.emit("1", 1).await;
    desk.until_taken(1).await;
    first.stop().await;
    let second = desk.run(long);
    desk.emit("1", 1).await;
    desk.until_taken(2).await;
    assert_eq!(second.stats.view().taken_over, 0);
    second.stop().await;
}

async fn until_it_holds_slots(publisher: &Running, holds: bool) {
    wait::until("the slots have changed the owner", || async { (publisher.stats.view().slots > 0) == holds })
        .await;
}

pub(crate) async fn a_publisher_whose_sink_is_down_leaves_its_slots_to_others(desk: Desk) {
    let sink = Script::new();
    sink.answer(|_| Answer::Down);
    let down = desk.run_into(options("s"), Arc::new(sink.clone()));
    until_it_holds_slots(&down, true).await;
    let well = desk.run(options("s"));
    desk.emit_mixed(100, 300).await;
    desk.until_taken(300).await;
    until_it_holds_slots(&down, false).await;
    let view = desk.store.subscriptions().await.unwrap();
    let its = view[0].publishers.iter().find(|publisher| publisher.slots == 0).unwrap();
    assert!(its.down_since.is_some() && its.down_why.is_some(), "the reason is shown to operators: {its:?}");
    // The first publisher tries its sink again later, and works when the sink is available.
    well.stop().await;
    sink.answer(|_| Answer::Take);
    desk.emit_mixed(100, 300).await;
    wait::until("the other sink has the remaining events", || async { sink.distinct() == 300 }).await;
    down.stop().await;
}

pub(crate) async fn a_publisher_whose_sink_never_answers_leaves_its_slots_to_others(desk: Desk) {
    // The kernel accepts connections to this socket; nobody reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = silent.local_addr().unwrap();
    let sinks = [
        format!(
            "type = \"webhook\"\nurl = \"http://{place}/\"\nallow_networks = [\"127.0.0.0/8\"]\nsecrets = [\"{SECRET}\"]"
        ),
        format!("type = \"redis\"\nurl = \"redis://{place}\"\nstream = \"orders\""),
        format!("type = \"nats\"\nurl = \"nats://{place}\"\nsubject = \"orders\""),
        format!("type = \"rabbitmq\"\nurl = \"amqp://{place}\"\nrouting_key = \"orders\""),
        format!("type = \"kafka\"\nbrokers = \"{place}\"\ntopic = \"orders\""),
    ];
    let mut publishers = Vec::new();
    for (number, sink) in sinks.iter().enumerate() {
        let name = format!("s{number}");
        let sink = common::open(&format!("{sink}\ntimeout_ms = 1000"));
        let hung = desk.run_into(options(&name), sink);
        until_it_holds_slots(&hung, true).await;
        let well = Script::new();
        publishers.push((hung, desk.run_into(options(&name), Arc::new(well.clone())), well));
    }
    desk.emit_mixed(100, 300).await;
    for (number, (hung, running, well)) in publishers.into_iter().enumerate() {
        let what = format!("the publisher beside silent sink {number} has everything");
        wait::until(&what, || async { well.distinct() == 300 }).await;
        for (order, sequences) in well.firsts_of_all() {
            assert_eq!(sequences, up_to(3), "order {order}");
        }
        running.stop().await;
        hung.stop().await;
    }
}

pub(crate) async fn publishers_whose_sinks_are_all_down_resume_when_these_are_back(desk: Desk) {
    desk.sink.answer(|_| Answer::Down);
    let running = [desk.run(options("s")), desk.run(options("s"))];
    desk.emit_mixed(100, 300).await;
    // By then both publishers have released their slots.
    wait::until("the sinks were called several times", || async { desk.sink.asked() >= 10 }).await;
    desk.sink.answer(|_| Answer::Take);
    desk.until_taken(300).await;
    for publisher in running {
        publisher.stop().await;
    }
    assert_eq!(desk.sink.taken().len(), 300, "nothing is published twice");
}
