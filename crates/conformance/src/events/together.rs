//! Concurrent emits, and listing of the log.

use milepost_core::event::NewEvent;
use milepost_core::event::listing::{EventFilter, EventPage};

use super::{Log, of};
use milepost_testkit::wait;

pub async fn calls_with_aggregates_in_opposite_order_never_deadlock(log: Log) {
    let call = |round: usize, reversed: bool| {
        // Some orders exist before and some are new.
        let mut orders: Vec<String> =
            (0..8).map(|n| if n % 2 == 0 { n.to_string() } else { format!("{n}-{round}") }).collect();
        if reversed {
            orders.reverse();
        }
        orders.iter().map(|order| of(order)).collect::<Vec<NewEvent>>()
    };
    let rounds = async {
        for round in 0..200 {
            let (forwards, backwards) = (call(round, false), call(round, true));
            let both = tokio::join!(log.store.emit_many(&forwards), log.store.emit_many(&backwards));
            both.0.unwrap();
            both.1.unwrap();
        }
    };
    tokio::time::timeout(wait::LIMIT, rounds).await.expect("calls wait for each other forever");
    assert_eq!(log.sequences("0").await, (1..=400).collect::<Vec<i64>>());
}

async fn filled(log: &Log) {
    for n in 0..10 {
        let mut event = of(if n % 3 == 0 { "a" } else { "b" });
        if n % 2 == 0 {
            event.event_type = "order.even".to_owned();
        }
        log.emit(&event).await;
    }
}

async fn positions(log: &Log, filter: EventFilter) -> Vec<i64> {
    log.store.events(&filter).await.unwrap().iter().map(|logged| logged.pos).collect()
}

pub async fn the_log_is_read_in_pages_both_ways(log: Log) {
    filled(&log).await;
    let all: Vec<i64> = log.all().await.iter().map(|logged| logged.pos).collect();
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted());
    let page = |page| EventFilter { page, limit: 4, ..EventFilter::default() };
    let newest: Vec<i64> = all.iter().rev().copied().collect();
    assert_eq!(positions(&log, page(EventPage::Before(None))).await, newest[..4]);
    assert_eq!(positions(&log, page(EventPage::Before(Some(newest[3])))).await, newest[4..8]);
    assert_eq!(positions(&log, page(EventPage::Before(Some(newest[7])))).await, newest[8..]);
    assert_eq!(positions(&log, page(EventPage::After(all[3]))).await, all[4..8]);
    assert!(positions(&log, page(EventPage::After(all[9]))).await.is_empty());
}

pub async fn the_log_is_read_by_aggregate_and_by_type(log: Log) {
    filled(&log).await;
    let all = log.all().await;
    for page in [EventPage::After(all[1].pos), EventPage::Before(Some(all[8].pos)), EventPage::Before(None)] {
        for aggregate in [None, Some(of("a").aggregate), Some(of("none").aggregate)] {
            for event_type in [None, Some("order.even".to_owned()), Some("none".to_owned())] {
                let mut expected: Vec<i64> = all
                    .iter()
                    .filter(|logged| match page {
                        EventPage::After(pos) => logged.pos > pos,
                        EventPage::Before(pos) => pos.is_none_or(|pos| logged.pos < pos),
                    })
                    .filter(|logged| aggregate.as_ref().is_none_or(|of| logged.event.aggregate == *of))
                    .filter(|logged| event_type.as_ref().is_none_or(|of| logged.event.event_type == *of))
                    .map(|logged| logged.pos)
                    .collect();
                if matches!(page, EventPage::Before(_)) {
                    expected.reverse();
                }
                expected.truncate(3);
                let (aggregate, event_type) = (aggregate.clone(), event_type);
                let filter = EventFilter { aggregate, event_type, page, limit: 3 };
                assert_eq!(positions(&log, filter.clone()).await, expected, "{filter:?}");
            }
        }
    }
}

pub async fn an_empty_call_does_nothing(log: Log) {
    assert_eq!(log.store.emit_many(&[]).await.unwrap(), []);
    assert!(log.all().await.is_empty());
}
