//! Throttles that hold runs.

use std::time::Duration;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use milepost::bulk::{Definition, InvalidBulk, Load, Settings, SettingsChange, Sizing, Window, Windows};
use milepost::{JobState, Operation, StoreError, Verb};
use milepost_core::bulk::listing::BulkView;
use milepost_testkit::notes;

use crate::bulk::members::{Gate, Members};

pub(crate) async fn a_throttle_holds_a_run_and_is_named_wherever_one_looks(members: Members) {
    members.add(0..40).await;
    let (open, closed) = (Gate::closed(), Gate::closed());
    open.set(false);
    let bulk = members.notify(10).throttle(open).throttle(closed.clone());
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    let view = members.until(job, "the bulk job is held", |view| view.throttle.is_some()).await;
    assert_eq!(view.throttle.as_deref(), Some("gate: closed by the test"));
    assert!(view.throttle_since.is_some());
    assert_eq!((view.state, view.counts.chunks), (JobState::Running, 0));

    let view = members
        .until(job, "the run releases its worker", |view| view.state == JobState::Pending && view.held_ms > 0)
        .await;
    assert!(view.throttle.is_some() && view.due_at.is_some() && view.held_ms >= 9_000, "{view:#?}");
    // On a busy machine, the run may be claimed again before the test reads it.
    let entry = members.scene.history(job).await.into_iter().find(|entry| entry.verb == Verb::Yield).unwrap();
    assert!(entry.note.as_ref().is_some_and(|note| note.contains("gate: closed by the test")), "{entry:?}");
    let row = members.scene.view(job).await.row;
    assert_eq!(row.attempt, u32::from(row.state == JobState::Running), "no attempt is counted");

    let since = view.throttle_since;
    // Makes the run due immediately, unless it has already been claimed again.
    let now = Operation::new(Verb::Snooze).delay(Duration::ZERO);
    drop(members.scene.operate(job, now).await);
    let is_held_here = |view: &BulkView| view.state == JobState::Running && view.throttle.is_some();
    let view = members.until(job, "the run is held again", is_held_here).await;
    assert_eq!(view.throttle_since, since, "the run was held all the time");

    closed.set(false);
    let view = members.until_state(job, JobState::Succeeded).await;
    assert_eq!(view.throttle, None);
    members.assert_once_each(job, 40).await;
    worker.shutdown().await;
}

pub(crate) async fn a_throttle_that_holds_in_the_middle_stops_further_chunks(members: Members) {
    members.add(0..200).await;
    let gate = Gate::closed();
    gate.set(false);
    let load = Load { rows_per_s: Some(5.0), duty: 1.0 };
    let sizing = Sizing { rows_min: 10, rows_max: 10, ..Sizing::default() };
    let bulk = members
        .notify_as(Definition { load, sizing, ..notes::definition("slow", 10) })
        .throttle(gate.clone());
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    members.until(job, "the run processes chunks", |view| view.counts.chunks >= 2).await;
    gate.set(true);
    let held = members.until(job, "the bulk job is held", |view| view.throttle.is_some()).await;
    gate.set(false);
    // At a higher rate, so that the test does not take long.
    let faster = Settings { rows_per_s: Some(1e6), ..Settings::default() };
    members.store().set_bulk(job, &faster.into()).await.unwrap();
    let view = members.until_state(job, JobState::Succeeded).await;
    assert!(held.counts.done < 200 && view.held_ms > 0, "{held:#?}");
    assert_eq!(view.settings.rows_per_s, Some(1e6));
    members.assert_once_each(job, 200).await;
    worker.shutdown().await;
}

pub(crate) async fn a_closed_window_puts_a_run_off_until_it_opens(members: Members) {
    members.add(0..20).await;
    let now = members.store().clock().await.unwrap().now.to_zoned(TimeZone::UTC);
    let hours = |hours: i64| {
        now.checked_add(jiff::Span::new().hours(hours)).unwrap().time().round(jiff::Unit::Minute).unwrap()
    };
    let every_day = (0..7).map(|day| Weekday::Monday.wrapping_add(day)).collect::<Vec<_>>();
    let window =
        |from, to| Windows::new(vec![Window::new(from, to, every_day.clone()).unwrap()], TimeZone::UTC);
    let opens_at = hours(2);
    let bulk = members.notify(10).windows(window(opens_at, hours(3)));
    let view = members.run(&bulk).await;
    assert_eq!((view.state, view.counts.chunks), (JobState::Pending, 0), "{view:#?}");
    let due_at = view.due_at.unwrap().to_zoned(TimeZone::UTC);
    assert_eq!(due_at.time().round(jiff::Unit::Minute).unwrap(), opens_at, "{view:#?}");
    let note = members.scene.history(view.id).await.pop().unwrap().note.unwrap();
    assert!(note.contains("window: opens at"), "{note}");

    let open = members.notify(10).windows(window(hours(-1), hours(1)));
    let now = Operation::new(Verb::Snooze).delay(Duration::ZERO);
    members.scene.operate(view.id, now).await.map(drop).unwrap();
    let view = members.drain(&open, view.id).await;
    assert_eq!(view.state, JobState::Succeeded);
    members.assert_once_each(view.id, 20).await;
}

pub(crate) async fn a_rate_that_is_set_counts_from_the_next_chunk_on(members: Members) {
    members.add(0..2_000).await;
    // At this rate the run would take more than six minutes.
    let load = Load { rows_per_s: Some(5.0), duty: 1.0 };
    let bulk = members.notify_as(Definition { load, ..notes::definition("slow", 10) });
    let job = members.start(&bulk).await;
    let worker = members.worker().bulk(bulk).start().await.unwrap();
    members.until(job, "the run processes chunks", |view| view.counts.chunks >= 2).await;
    let settings = Settings {
        rows_per_s: Some(1e6),
        chunk_rows_min: Some(100),
        chunk_rows_max: Some(100),
        ..Settings::default()
    };
    members.store().set_bulk(job, &settings.into()).await.unwrap();
    let view = members.until_state(job, JobState::Succeeded).await;
    assert_eq!((view.chunk_rows, view.settings), (Some(100), settings));
    members.assert_once_each(job, 2_000).await;
    worker.shutdown().await;
}

pub(crate) async fn settings_that_cannot_be_are_refused(members: Members) {
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let none = Settings::default();
    for (name, settings) in [
        ("rows_per_s", Settings { rows_per_s: Some(0.0), ..none }),
        ("rows_per_s", Settings { rows_per_s: Some(-1.0), ..none }),
        ("rows_per_s", Settings { rows_per_s: Some(f64::NAN), ..none }),
        ("duty", Settings { duty: Some(0.0), ..none }),
        ("duty", Settings { duty: Some(1.5), ..none }),
        ("chunk_ms", Settings { chunk_ms: Some(0), ..none }),
        ("chunk_rows_min", Settings { chunk_rows_min: Some(0), ..none }),
        ("chunk_rows_max", Settings { chunk_rows_max: Some(0), ..none }),
        ("chunk_rows_min", Settings { chunk_rows_min: Some(10), chunk_rows_max: Some(9), ..none }),
    ] {
        let error = members.store().set_bulk(job, &settings.into()).await.unwrap_err();
        let StoreError::Bulk(InvalidBulk::Setting { name: told, .. }) = &error else { panic!("{error}") };
        assert_eq!(*told, name, "{error}");
    }
    assert_eq!(members.view(job).await.settings, none);
    let other = members.scene.enqueue(milepost_testkit::Scene::job()).await;
    let error = members.store().set_bulk(other, &none.into()).await.unwrap_err();
    assert!(matches!(error, StoreError::Bulk(InvalidBulk::NotBulk { .. })), "{error}");
}

pub(crate) async fn settings_are_removed_again(members: Members) {
    members.add(0..20).await;
    let job = members.start(&members.notify(10)).await;
    let slow = Settings { rows_per_s: Some(0.5), chunk_rows_max: Some(3), ..Settings::default() };
    members.store().set_bulk(job, &slow.into()).await.unwrap();
    let settings = Settings { duty: Some(0.5), ..Settings::default() };
    let change = SettingsChange { as_defined: true, settings, priority: None };
    members.store().set_bulk(job, &change).await.unwrap();
    assert_eq!(members.view(job).await.settings, settings, "only those of the last change are left");
    let as_defined = SettingsChange { as_defined: true, ..SettingsChange::default() };
    members.store().set_bulk(job, &as_defined).await.unwrap();
    let view = members.drain(&members.notify(10), job).await;
    assert_eq!((view.settings, view.counts.done), (Settings::default(), 20));
}
