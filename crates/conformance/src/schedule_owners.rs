//! Changes of schedules: who owns one, and what a change keeps of it.

use super::schedules::{periods_ago, rare, stand, template, tick_all, view};
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::precedence::{Over, Put, Scope, Synced};
use milepost_core::schedule::{Misfire, Source, Spec};
use milepost_testkit::scene::{KIND, Scene};
use serde_json::json;
use std::time::Duration;

pub async fn a_schedule_put_again_keeps_what_is_due_unless_it_ticks_otherwise(scene: Scene) {
    let due = periods_ago(&scene, 1).await;
    stand(&scene, &rare("h"), due).await;
    let mut changed = rare("h");
    changed.makes = NewJob::new(KIND, &json!("changed")).unwrap().into();
    scene.store.put_schedule(&changed, Source::Operator).await.unwrap();
    let kept = view(&scene, "h").await;
    assert_eq!(kept.next_at, Some(due), "putting the schedule again loses no tick");
    assert_eq!(template(&kept.schedule).payload.get(), "\"changed\"");
    changed.spec = Spec::every(Duration::from_secs(7200)).unwrap();
    scene.store.put_schedule(&changed, Source::Operator).await.unwrap();
    let now = scene.store.clock().await.unwrap().now;
    assert!(view(&scene, "h").await.next_at.is_some_and(|next_at| next_at > now));
}

pub async fn a_schedule_is_created_once_and_edited_only_as_it_was_seen(scene: Scene) {
    let due = periods_ago(&scene, 1).await;
    stand(&scene, &rare("h"), due).await;
    assert!(!scene.store.create_schedule(&rare("h")).await.unwrap(), "it exists");
    assert!(scene.store.create_schedule(&rare("other")).await.unwrap());
    let seen = view(&scene, "h").await.schedule.fingerprint();
    // A tick changes the schedule's state, not its settings.
    tick_all(scene.store.as_ref()).await;
    assert!(scene.store.edit_schedule(&rare("h").misfire(Misfire::Skip), seen).await.unwrap());
    assert!(!scene.store.edit_schedule(&rare("h"), seen).await.unwrap(), "it was changed");
    let stored = view(&scene, "h").await;
    assert_eq!((stored.schedule.misfire, stored.source), (Misfire::Skip, Source::Operator));
    let seen = stored.schedule.fingerprint();
    scene.store.remove_schedule("h", Source::Operator).await.unwrap();
    assert!(!scene.store.edit_schedule(&rare("h"), seen).await.unwrap(), "it was removed");
    assert!(scene.store.schedule("h").await.unwrap().is_none());
    let put = scene.store.write_schedule(&rare("h"), Source::Operator, None, Over::Version(1)).await;
    assert_eq!(put.unwrap(), Put::Outdated);
    assert!(
        scene.store.schedule("h").await.unwrap().is_none(),
        "a version that is gone is not created again"
    );
}

pub async fn what_is_not_there_or_not_right_is_said(scene: Scene) {
    let none = |error| matches!(error, StoreError::NoSuchSchedule(name) if name == "nowhere");
    assert!(none(scene.store.resume_schedule("nowhere").await.unwrap_err()));
    assert!(none(scene.store.run_schedule_now("nowhere", None).await.unwrap_err()));
    assert!(!scene.store.pause_schedule("nowhere").await.unwrap());
    assert!(!scene.store.remove_schedule("nowhere", Source::Operator).await.unwrap());
    let mut no_kind = rare("h");
    let mut job = Scene::job();
    job.kind = String::new();
    no_kind.makes = job.into();
    for bad in [rare(""), rare("a\nb"), rare("h").misfire(Misfire::All { max: 0 }), no_kind] {
        let refused = scene.store.put_schedule(&bad, Source::Operator).await;
        assert!(matches!(refused, Err(StoreError::InvalidSchedule { .. })), "{refused:?}");
        let refused = scene.store.sync_schedules(&[rare("good"), bad], &Scope::All).await;
        assert!(matches!(refused, Err(StoreError::InvalidSchedule { .. })), "{refused:?}");
    }
    assert!(scene.store.schedules().await.unwrap().is_empty());
}

pub async fn a_configuration_owns_its_schedules_and_no_others(scene: Scene) {
    let store = scene.store.as_ref();
    store.put_schedule(&rare("mine"), Source::Operator).await.unwrap();
    let synced = store.sync_schedules(&[rare("a"), rare("b"), rare("mine")], &Scope::All).await.unwrap();
    assert_eq!((synced.removed, synced.foreign), (vec![], vec!["mine".to_owned()]));
    assert_eq!(view(&scene, "mine").await.source, Source::Operator);
    store.pause_schedule("b").await.unwrap();

    let synced = store.sync_schedules(&[rare("b"), rare("c")], &Scope::All).await.unwrap();
    assert_eq!((synced.removed, synced.foreign), (vec!["a".to_owned()], vec![]));
    let left = store.schedules().await.unwrap();
    let left: Vec<_> = left.iter().map(|view| (view.schedule.name.as_str(), view.source)).collect();
    assert_eq!(left, [("b", Source::Config), ("c", Source::Config), ("mine", Source::Operator)]);
    assert!(view(&scene, "b").await.paused_at.is_some(), "a paused schedule stays paused");
}

pub async fn an_operators_schedule_stays_whatever_a_configuration_says(scene: Scene) {
    let store = scene.store.as_ref();
    store.sync_schedules(&[rare("a")], &Scope::All).await.unwrap();
    let mut by_hand = rare("a");
    by_hand.makes = Scene::job().queue("by hand").into();
    assert_eq!(store.put_schedule(&by_hand, Source::Operator).await.unwrap(), Put::Stands);
    assert_eq!(store.sync_schedules(&[rare("a")], &Scope::All).await.unwrap().foreign, ["a"]);
    assert_eq!(store.sync_schedules(&[], &Scope::All).await.unwrap(), Synced::default());
    assert!(!store.remove_schedule("a", Source::Config).await.unwrap());
    let stands = view(&scene, "a").await;
    assert_eq!((stands.source, template(&stands.schedule).queue.as_str()), (Source::Operator, "by hand"));
    assert!(store.remove_schedule("a", Source::Operator).await.unwrap());
    assert_eq!(store.sync_schedules(&[rare("a")], &Scope::All).await.unwrap(), Synced::default());
    assert_eq!(view(&scene, "a").await.source, Source::Config);
}
