//! Audit: every change by an actor adds one row in the same transaction; no other change adds rows.

mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use milepost_core::audit::{Actor, AuditEntry, AuditFilter, WHATS};
use milepost_core::bulk;
use milepost_core::error::StoreError;
use milepost_core::event::{Begin, RelayError};
use milepost_core::finish::End;
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::port::{Operated, Operation, Store};
use milepost_core::precedence::{Put, Scope};
use milepost_core::transition::Verb;

use crate::batches::graph;
use milepost_core::dag::checked::Dag;
use milepost_testkit::faulty::Faulty;
use milepost_testkit::scene::{KIND, Scene};
use serde_json::json;
use walk::{Walk, rare};

/// Actions that the walk does not include, because they need a special setup; other tests cover them.
const ELSEWHERE: [&str; 6] =
    ["bulk.interrupt", "log.reseed", "inbox.retry", "inbox.drop", "token.create", "token.revoke"];

/// The actor.
pub const ADA: &str = "ada@host";
/// The reason.
pub const WHY: &str = "because";

/// Returns the store as used by an actor with a reason.
pub fn acting(store: &Arc<dyn Store>) -> Arc<dyn Store> {
    store.acting_as(Actor::new(ADA).expect("a name").because(Some(WHY)).expect("a reason"))
}

/// Returns the whole audit, newest first.
pub async fn log(store: &Arc<dyn Store>) -> Vec<AuditEntry> {
    read(store, AuditFilter::default()).await
}

/// Returns the audit entries that match a filter.
async fn read(store: &Arc<dyn Store>, filter: AuditFilter) -> Vec<AuditEntry> {
    store.audit_log(&AuditFilter { limit: 10_000, ..filter }).await.expect("listed")
}

/// Returns the only entry of the audit.
pub async fn only_entry(store: &Arc<dyn Store>) -> AuditEntry {
    let mut log = log(store).await;
    assert_eq!(log.len(), 1, "{log:#?}");
    let entry = log.remove(0);
    assert_eq!((entry.who.as_str(), entry.why.as_deref()), (ADA, Some(WHY)));
    entry
}

pub async fn every_change_by_an_actor_leaves_one_row(scene: Scene) {
    let mut walk = Walk::of(scene, true);
    walk.through().await;
    let all: BTreeSet<&str> = WHATS.iter().copied().filter(|what| !ELSEWHERE.contains(what)).collect();
    assert_eq!(walk.told, all, "every action occurs");
}

pub async fn without_an_actor_nothing_is_written(scene: Scene) {
    let mut walk = Walk::of(scene, false);
    walk.through().await;
    let written: Vec<AuditEntry> = log(&walk.scene.store).await;
    // Repairs are always recorded, because they leave no other record.
    assert!(
        written.iter().all(|entry| entry.who == "nobody" && entry.what == "doctor.repair"),
        "{written:#?}"
    );
}

pub async fn what_changes_nothing_leaves_no_row(scene: Scene) {
    let store = acting(&scene.store);
    let job = scene.enqueue(Scene::job().key("k")).await;
    scene.store.pause_queue("q", true).await.unwrap();
    scene.store.put_limit(&Limit::group("g").slots(2), Source::Operator).await.unwrap();
    scene.store.put_schedule(&rare("tax"), Source::Operator).await.unwrap();
    scene.store.pause_schedule("tax").await.unwrap();
    scene.store.define_dag(&Dag::check(graph("d", &[("a", &[])])).unwrap()).await.unwrap();
    scene.store.subscribe("s", Begin::Now).await.unwrap();

    assert_eq!(store.enqueue(&Scene::job().key("k")).await.unwrap().job, job);
    assert!(!store.pause_queue("q", true).await.unwrap());
    assert!(!store.pause_queue("unpaused", false).await.unwrap());
    assert_eq!(store.put_limit(&Limit::group("g").slots(2), Source::Operator).await.unwrap(), Put::Stands);
    assert_eq!(store.put_limit(&Limit::group("g").slots(3), Source::Config).await.unwrap(), Put::Foreign);
    assert!(!store.remove_limit(&Limit::group("none").target, Source::Operator).await.unwrap());
    assert_eq!(store.put_schedule(&rare("tax"), Source::Operator).await.unwrap(), Put::Stands);
    assert!(!store.pause_schedule("tax").await.unwrap());
    assert!(!store.remove_schedule("none", Source::Operator).await.unwrap());
    store.define_dag(&Dag::check(graph("d", &[("a", &[])])).unwrap()).await.unwrap();
    assert!(!store.resume_subscription("s").await.unwrap());
    assert_eq!(log(&scene.store).await, []);
}

pub async fn each_action_on_a_job_leaves_a_row_even_if_its_state_stays(scene: Scene) {
    let store = acting(&scene.store);
    let runs = scene.running(Scene::job()).await;
    let cancel = Operation::new(Verb::Cancel).grace(Duration::from_secs(600));
    for reason in ["wrong address", "wrong customer"] {
        assert_eq!(
            store.operate(runs.run.job, &cancel.clone().note(reason)).await.unwrap(),
            Operated::StopRequested
        );
    }
    let rows: Vec<String> = log(&scene.store).await.into_iter().map(|entry| entry.what).collect();
    assert_eq!(rows, ["job.cancel", "job.cancel"], "the reason of the second request replaced the first");
    scene.finish(&runs, End::Cancel).await;
}

pub async fn what_is_refused_leaves_no_row(scene: Scene) {
    let store = acting(&scene.store);
    let job = scene.enqueue(Scene::job()).await;
    let refused = store.operate(job, &Operation::new(Verb::Resume)).await;
    assert!(matches!(refused, Err(StoreError::Illegal { .. })), "{refused:?}");
    let far = milepost_core::job::StartAt::At("9000-01-01T00:00:00Z".parse().unwrap());
    let refused = store.enqueue_many(&[Scene::job(), Scene::job().start(far)]).await;
    assert!(matches!(refused, Err(StoreError::Invalid { index: 1, .. })), "{refused:?}");
    let refused = store.resume_schedule("none").await;
    assert!(matches!(refused, Err(StoreError::NoSuchSchedule(_))), "{refused:?}");
    assert!(store.retry_bulk_failures(job).await.is_err());
    let refused = store.resume_subscription("none").await;
    assert!(matches!(refused, Err(StoreError::Relay(RelayError::NoSuchSubscription(_)))), "{refused:?}");
    assert_eq!(log(&scene.store).await, []);
}

pub async fn a_configuration_leaves_rows_for_what_it_changes(scene: Scene) {
    let store = acting(&scene.store);
    let bulk = |name: &str| bulk::definition::Definition::new(name);
    for round in 0..2 {
        let limits = [Limit::kind("a", Rate::new(1.0, 1)), Limit::group("b").slots(2)];
        store.sync_limits(&limits, &Scope::All).await.unwrap();
        store.sync_schedules(&[rare("c"), rare("d")], &Scope::All).await.unwrap();
        store.sync_bulks(&[bulk("e"), bulk("f")], &Scope::All).await.unwrap();
        assert_eq!(log(&scene.store).await.len(), 6, "round {round}");
    }
    store.sync_limits(&[Limit::group("b").slots(3)], &Scope::All).await.unwrap();
    store.sync_schedules(&[rare("c")], &Scope::All).await.unwrap();
    store.sync_bulks(&[bulk("f")], &Scope::All).await.unwrap();
    let log = log(&scene.store).await;
    let told: Vec<(&str, &str)> =
        log[..4].iter().rev().map(|it| (it.what.as_str(), it.subject.as_deref().unwrap())).collect();
    let changed = [
        ("limit.put", "group b"),
        ("limit.remove", "kind a"),
        ("schedule.remove", "d"),
        ("bulk.remove", "e"),
    ];
    assert_eq!((told, log.len()), (changed.to_vec(), 10));
    assert_eq!((&log[3].detail["before"]["slots"], &log[3].detail["after"]["slots"]), (&json!(2), &json!(3)));
}

pub async fn the_audit_is_read_by_who_what_and_subject_in_pages(scene: Scene) {
    let bob = scene.store.acting_as(Actor::new("bob").unwrap());
    let ada = acting(&scene.store);
    for queue in ["a", "b", "c"] {
        ada.pause_queue(queue, true).await.unwrap();
        bob.pause_queue(queue, false).await.unwrap();
    }
    let of = async |who: Option<&str>, what: Option<&str>, subject: Option<&str>| -> String {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let filter =
            AuditFilter { who: own(who), what: own(what), subject: own(subject), ..Default::default() };
        let found = read(&scene.store, filter).await;
        found.iter().map(|it| format!("{}{} ", &it.who[..1], it.subject.as_deref().unwrap())).collect()
    };
    assert_eq!(of(None, None, None).await, "bc ac bb ab ba aa ");
    assert_eq!(of(Some("bob"), None, None).await, "bc bb ba ");
    assert_eq!(of(None, Some("queue.pause"), None).await, "ac ab aa ");
    assert_eq!(of(None, None, Some("b")).await, "bb ab ");
    assert_eq!(of(Some(ADA), Some("queue.pause"), None).await, "ac ab aa ");
    assert_eq!(of(Some("bob"), Some("queue.pause"), None).await, "");
    assert_eq!(of(Some("bob"), Some("queue.resume"), Some("a")).await, "ba ");
    assert_eq!(of(Some(ADA), None, Some("a")).await, "aa ");
    let page = async |before| {
        let filter = AuditFilter { who: Some("bob".to_owned()), before, limit: 2, ..Default::default() };
        scene.store.audit_log(&filter).await.unwrap()
    };
    let first = page(None).await;
    let second = page(Some(first[1].pos)).await;
    assert_eq!((first.len(), second.len(), second[0].subject.as_deref()), (2, 1, Some("a")));
}

pub async fn a_change_whose_answer_is_lost_has_its_row(scene: Scene) {
    let faulty = Faulty::before(Arc::clone(&scene.store));
    let store: Arc<dyn Store> = faulty.clone();
    faulty.changes_lost.store(1, Ordering::SeqCst);
    acting(&store).pause_queue("q", true).await.unwrap_err();
    assert!(!acting(&store).pause_queue("q", true).await.unwrap(), "the queue was already paused");
    assert_eq!(only_entry(&scene.store).await.what, "queue.pause");
}

pub async fn a_row_lists_no_more_than_a_thousand_jobs(scene: Scene) {
    let jobs: Vec<NewJob> = (0..1_200).map(|_| Scene::job()).collect();
    acting(&scene.store).enqueue_many(&jobs).await.unwrap();
    let made = &only_entry(&scene.store).await.detail["after"];
    assert_eq!((&made["jobs"], &made["kinds"]), (&json!(1_200), &json!([KIND])));
    assert_eq!(made["ids"].as_array().unwrap().len(), 1_000);
}
