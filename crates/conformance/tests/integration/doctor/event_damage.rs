//! Deliberate damage to the event log and to subscriptions.

use std::time::Duration;

use milepost_core::doctor::Check;
use milepost_core::event::{Aggregate, Failure, NewEvent, Outcome, PageSize, Publisher, Undelivered};
use milepost_core::port::LogReader;
use milepost_testkit::examine::{examine, examined, look};
use milepost_testkit::home::{Home, PostgresHome};
use milepost_testkit::{Scene, relay};

use crate::doctor::damage::{Besides, NOTHING_BESIDES, Patient};
use crate::doctor::{checks, homes};

const PAGE: PageSize = PageSize { events_max: 1000, bytes_max: 1 << 20 };

fn event(id: &str) -> NewEvent {
    NewEvent::new(Aggregate::new("order", id), "order.paid", &()).unwrap()
}

impl Patient<'_> {
    /// Emits two events for each of two orders.
    async fn emit(&self) {
        self.scene.store.emit_many(&["a", "b", "a", "b"].map(event)).await.unwrap();
    }

    async fn reader(&self) -> (Publisher, Box<dyn LogReader>) {
        relay::reader(self.scene.store.as_ref(), "s", Duration::from_secs(60)).await
    }

    /// Creates a subscription that has parked both events of one order and dead-lettered one of the other.
    async fn park(&self) {
        self.emit().await;
        let (publisher, mut reader) = self.reader().await;
        let page = reader.page(PAGE).await.unwrap();
        let of = |id: &str| -> Vec<_> {
            page.events.iter().filter(|event| event.aggregate.id == id).map(|event| event.id).collect()
        };
        let failed = |event, then| Failure { event, deliveries: 1, why: "no".to_owned(), then };
        let (parked, dead) = (of("a"), of("b"));
        let failures = vec![failed(parked[0], Undelivered::Halt), failed(dead[0], Undelivered::DeadLetter)];
        let outcome = Outcome { failures, behind: vec![parked[1]], untried: Vec::new() };
        reader.commit(&outcome).await.unwrap();
        self.scene.store.leave(&publisher).await.unwrap();
    }

    /// Changes rows that other rows reference, without foreign key checks.
    async fn tamper_unchecked(&self, sql: &str) {
        let (off, on) = if self.home.address().starts_with("sqlite:") {
            ("pragma foreign_keys = off", "pragma foreign_keys = on")
        } else {
            ("set session_replication_role = replica", "set session_replication_role = origin")
        };
        self.tamper(&format!("{off}; {sql}; {on}")).await;
    }

    async fn age_events(&self) {
        let (at, past) = (self.home.time("emitted_at"), self.past());
        self.tamper(&format!("update milepost.event set {at} = {past}")).await;
    }

    /// Damages events and subscriptions.
    pub(crate) async fn damage_events(&self, check: Check) -> Besides {
        match check {
            Check::AggregateBehind => {
                self.emit().await;
                self.tamper("update milepost.aggregate set last_seq = 1 where aggregate_id = 'a'").await;
                self.tamper("delete from milepost.aggregate where aggregate_id = 'b'").await;
            }
            Check::ParkedWithoutEvents => {
                self.park().await;
                self.tamper("delete from milepost.parked_event").await;
            }
            Check::ParkedWithoutAggregate => {
                self.park().await;
                self.tamper_unchecked("delete from milepost.parked_aggregate").await;
            }
            Check::HeldEventGone => {
                self.park().await;
                self.tamper("delete from milepost.event").await;
            }
            Check::ReseedNeeded => {
                self.reader().await;
                self.tamper("update milepost.subscription set log_identity = log_identity + 1").await;
            }
            Check::NobodyPublishes => {
                self.emit().await;
                let (publisher, _) = self.reader().await;
                self.scene.store.leave(&publisher).await.unwrap();
                self.age_events().await;
            }
            _ => return None,
        }
        NOTHING_BESIDES
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregate_goes_on_after_its_head_was_raised() {
    for home in homes().await {
        let patient = Patient { home: home.as_ref(), scene: Scene::on(home.store()).await };
        let store = &patient.scene.store;
        patient.damage_events(Check::AggregateBehind).await.unwrap();
        store.emit(&event("a")).await.unwrap_err();
        assert_eq!(store.repair(Check::AggregateBehind, &look(), 9).await.unwrap(), 2);
        for id in ["a", "b"] {
            assert_eq!(store.emit(&event(id)).await.unwrap().sequence, 3);
        }
        assert_eq!(examine(store).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_a_finding_only_where_nobody_publishes_what_is_not_paused() {
    for home in homes().await {
        let patient = Patient { home: home.as_ref(), scene: Scene::on(home.store()).await };
        let store = &patient.scene.store;
        patient.emit().await;
        let (publisher, mut reader) = patient.reader().await;
        patient.age_events().await;
        assert_eq!(examine(store).await, [], "a publisher holds the slots");
        store.leave(&publisher).await.unwrap();
        let found = examined(store, Check::NobodyPublishes).await.unwrap();
        assert_eq!(found.examples[0].what, "s");
        store.pause_subscription("s", "by hand").await.unwrap();
        assert_eq!(examine(store).await, [], "the subscription is paused");
        store.resume_subscription("s").await.unwrap();
        reader.balance().await.unwrap();
        while !reader.page(PAGE).await.unwrap().events.is_empty() {
            reader.commit(&Outcome::default()).await.unwrap();
        }
        store.leave(&publisher).await.unwrap();
        assert_eq!(examine(store).await, [], "all events are published");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_do_not_fit_are_found_on_postgres_and_left_to_people() {
    let home = PostgresHome::fresh().await;
    let patient = Patient { home: &home, scene: Scene::on(home.store()).await };
    let store = &patient.scene.store;
    patient.park().await;
    assert_eq!(examine(store).await, []);
    home.tamper("delete from milepost.subscription_slot where slot = 7").await;
    let found = examine(store).await;
    assert_eq!(
        (checks(&found), found[0].examples[0].detail.as_str()),
        (vec![Check::SlotsMissing], "63 slots")
    );
    home.tamper("delete from milepost.subscription").await;
    let moved =
        "update milepost.event set slot = (slot + 1) % 64 where aggregate_id = 'b' and aggregate_seq = 2";
    home.tamper(moved).await;
    let found = examine(store).await;
    assert_eq!((checks(&found), found[0].count), (vec![Check::AggregateInTwoSlots], 1));
    for check in [Check::SlotsMissing, Check::AggregateInTwoSlots] {
        assert_eq!(store.repair(check, &look(), 9).await.unwrap(), 0);
    }
}
