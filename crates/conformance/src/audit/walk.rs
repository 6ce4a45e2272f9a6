//! Walk through every audited verb.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use milepost_core::actions::job::{Inputs, JobAction};
use milepost_core::actions::{Action as _, Input};
use milepost_core::alert::{ActiveAlert, AlertKey, AlertRule, IncidentTimes, Severity, SilenceUntil};
use milepost_core::audit::AuditFilter;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::batch::start::NewBatch;
use milepost_core::batch::wait::NewSignal;
use milepost_core::bulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Parts, Survey, TargetFailure};
use milepost_core::bulk::settings::{Settings, SettingsChange};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::TaskState;
use milepost_core::dag::wait::Wait;
use milepost_core::doctor::Check;
use milepost_core::event::relay_listing::{DeadVerb, ParkedVerb, Replay};
use milepost_core::event::{Begin, Failure, Outcome, PageSize, Undelivered};
use milepost_core::finish::End;
use milepost_core::ident::{BatchId, EventId, JobId};
use milepost_core::inbox::Consumer;
use milepost_core::job::duplicate::OnDuplicate;
use milepost_core::job::{NewJob, Priority};
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::port::{JobEdit, Operation, Store};
use milepost_core::precedence::Scope;
use milepost_core::retention::{Keep, Retained, RetentionPeriod};
use milepost_core::schedule::{Schedule, Spec};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::{Value, json};

use super::{ADA, WHY, acting};
use crate::batches::graph;
use crate::events::of;
use crate::rescue;
use milepost_testkit::scene::{KIND, LONG, Scene, retry};
use milepost_testkit::{examine, relay, wait};

/// Returns a schedule that ticks every day.
pub(super) fn rare(name: &str) -> Schedule {
    let daily = Spec::every(SignedDuration::from_hours(24).unsigned_abs()).expect("invalid interval");
    Schedule::new(name, daily, Scene::job())
}

/// Shape of an audit row: whether it has the state of its subject before, and after, the change.
const CAME: (bool, bool) = (false, true);
const CHANGED: (bool, bool) = (true, true);
const WENT: (bool, bool) = (true, false);

/// The walk, and the audit entries that it has checked.
pub(super) struct Walk {
    /// The store without an actor, for preparations.
    pub(super) scene: Scene,
    /// The store that makes the audited changes.
    store: Arc<dyn Store>,
    acts: bool,
    /// Position of the last entry that was checked.
    last: i64,
    /// The actions that were recorded.
    pub(super) told: BTreeSet<&'static str>,
    /// The actions on jobs that were performed.
    performed: BTreeSet<&'static str>,
}

impl Walk {
    /// Creates a walk with an actor, or one without.
    pub(super) fn of(scene: Scene, acts: bool) -> Self {
        let store = if acts { acting(&scene.store) } else { Arc::clone(&scene.store) };
        Self { scene, store, acts, last: 0, told: BTreeSet::new(), performed: BTreeSet::new() }
    }

    /// Performs every verb at least once. Add new verbs here, except those of jobs.
    pub(super) async fn through(&mut self) {
        self.jobs().await;
        self.queues_and_limits().await;
        self.other_actions_on_jobs().await;
        self.schedules().await;
        self.bulks().await;
        self.batches().await;
        self.events().await;
        self.inboxes().await;
        self.repairs().await;
    }

    /// Asserts that exactly this entry was added since the last step. Returns its detail.
    async fn told(&mut self, what: &'static str, subject: impl ToString, shape: (bool, bool)) -> Value {
        let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
        let log = self.scene.store.audit_log(&filter).await.unwrap();
        let new: Vec<_> = log.into_iter().filter(|entry| entry.pos > self.last).collect();
        if !self.acts {
            assert!(new.iter().all(|entry| entry.who == "nobody"), "{what}: {new:#?}");
            return Value::Null;
        }
        assert_eq!(new.len(), 1, "{what}: {new:#?}");
        let entry = &new[0];
        assert_eq!((entry.who.as_str(), entry.why.as_deref()), (ADA, Some(WHY)));
        let subject = Some(subject.to_string()).filter(|subject| !subject.is_empty());
        assert_eq!((entry.what.as_str(), &entry.subject), (what, &subject), "{}", entry.detail);
        let has = |name: &str| entry.detail.get(name).is_some();
        assert_eq!((has("before"), has("after")), shape, "{what}: {}", entry.detail);
        assert_ne!(entry.detail.get("before"), entry.detail.get("after"), "{what}");
        self.last = entry.pos;
        self.told.insert(what);
        entry.detail.clone()
    }

    async fn operate(&mut self, what: &'static str, job: JobId, operation: Operation) -> Value {
        self.store.operate(job, &operation).await.unwrap();
        self.performed.insert(what);
        self.told(what, job, CHANGED).await
    }

    async fn jobs(&mut self) {
        let job = Scene::job();
        self.store.enqueue(&job).await.unwrap();
        self.told("job.create", job.id, CAME).await;
        self.operate("job.snooze", job.id, Operation::new(Verb::Snooze).delay(LONG)).await;
        let edit = JobEdit { max_attempts: Some(3), ..JobEdit::default() };
        self.store.edit_job(job.id, &edit).await.unwrap();
        let detail = self.told("job.edit", job.id, CHANGED).await;
        if self.acts {
            assert_eq!(detail["after"]["edited"], json!(["max_attempts"]));
        }
        let ruled = |max| Scene::job().key("ruled").max_attempts(max).on_duplicate(OnDuplicate::replace());
        let replaced = ruled(1);
        self.store.enqueue(&replaced).await.unwrap();
        self.told("job.create", replaced.id, CAME).await;
        let by = ruled(2);
        self.store.enqueue(&by).await.unwrap();
        let detail = self.told("job.create", by.id, CAME).await;
        if self.acts {
            let after = json!({ "jobs": 1, "replaced": 1, "kinds": [KIND], "ids": [replaced.id] });
            assert_eq!(detail["after"], after, "a replaced job is told");
        }
        self.scene.operate(replaced.id, Operation::new(Verb::Cancel)).await.unwrap();
        self.operate("job.abort", job.id, Operation::new(Verb::Abort)).await;
        self.operate("job.resume", job.id, Operation::new(Verb::Resume)).await;
        let detail = self.operate("job.cancel", job.id, Operation::new(Verb::Cancel)).await;
        if self.acts {
            assert_eq!(
                (&detail["before"]["state"], &detail["after"]["state"]),
                (&"pending".into(), &"canceled".into())
            );
        }
        assert!(self.store.reveal_job(job.id).await.unwrap().is_some());
        self.told("job.reveal", job.id, CHANGED).await;
        assert!(self.store.reveal_job(JobId::new()).await.unwrap().is_none(), "this is no action");
        self.operate("job.rerun", job.id, Operation::new(Verb::Rerun)).await;
        self.operate("job.skip", job.id, Operation::new(Verb::Skip)).await;

        let known = self.scene.enqueue(Scene::job().key("known")).await;
        let many = [Scene::job(), Scene::job().key("known"), NewJob::new("other", &()).unwrap()];
        assert_eq!(self.store.enqueue_many(&many).await.unwrap()[1].job, known);
        let detail = self.told("job.create", "", CAME).await;
        if self.acts {
            assert_eq!(detail["after"]["jobs"], 2, "a duplicate is not counted");
        }
        for job in self.scene.claim(10).await {
            self.scene.finish(&job, End::Succeed { result: None }).await;
        }

        let (failed, _) = self.scene.job_in(JobState::Failed).await;
        self.operate("job.retry", failed, Operation::new(Verb::RetryNow)).await;
        self.operate("job.cancel", failed, Operation::new(Verb::Cancel)).await;
        let waits = self.scene.running(Scene::job()).await;
        self.scene.finish(&waits, retry(LONG)).await;
        self.operate("job.mark", waits.run.job, Operation::new(Verb::Mark)).await;
        let runs = self.scene.running(Scene::job()).await;
        let detail = self.operate("job.cancel", runs.run.job, Operation::new(Verb::Cancel).grace(LONG)).await;
        if self.acts {
            assert_eq!(detail["after"]["stop"], "cancel", "it was asked to stop");
        }
        self.scene.finish(&runs, End::Cancel).await;
    }

    /// Performs the actions on jobs that were not performed before, each in its usual state.
    async fn other_actions_on_jobs(&mut self) {
        for &action in JobAction::ALL {
            let state = action.usual_state();
            let verb = action.verb(state).expect("the usual state allows it");
            let what = verb.audit_name().expect("an action is audited");
            if !self.performed.contains(what) {
                let (job, _) = self.scene.job_in(state).await;
                let delay = action.description().inputs.contains(&Input::RequiredDelay).then_some(LONG);
                let inputs = Inputs { delay, grace: Some(Duration::ZERO), ..Inputs::default() };
                self.operate(what, job, action.operation(verb, &inputs).expect("complete")).await;
                self.scene.operate(job, Operation::new(Verb::Cancel)).await.expect("canceled");
            }
        }
    }

    async fn queues_and_limits(&mut self) {
        self.store.pause_queue("mail", true).await.unwrap();
        self.told("queue.pause", "mail", CHANGED).await;
        self.store.pause_queue("mail", false).await.unwrap();
        self.told("queue.resume", "mail", CHANGED).await;

        let mut period = RetentionPeriod { of: Retained::Failed, keep: Keep::days(30) };
        self.store.put_retention(period).await.unwrap();
        self.told("retention.put", "failed", CAME).await;
        period.keep = Keep::Forever;
        self.store.put_retention(period).await.unwrap();
        self.told("retention.put", "failed", CHANGED).await;
        self.store.remove_retention(period.of).await.unwrap();
        self.told("retention.remove", "failed", WENT).await;

        let alert = ActiveAlert {
            key: AlertKey::new(AlertRule::QueuePaused, "mail"),
            severity: Severity::Warning,
            title: String::new(),
            words: String::new(),
            command: String::new(),
        };
        self.store.observe_alerts(std::slice::from_ref(&alert), &IncidentTimes::default()).await.unwrap();
        self.store.silence_alert(&alert.key, SilenceUntil::Over).await.unwrap();
        self.told("alert.silence", "queue_paused: mail", CAME).await;
        self.store.silence_alert(&alert.key, SilenceUntil::For(LONG)).await.unwrap();
        self.told("alert.silence", "queue_paused: mail", CHANGED).await;
        self.store.unsilence_alert(&alert.key).await.unwrap();
        self.told("alert.unsilence", "queue_paused: mail", WENT).await;

        let kind = Limit::kind("mail", Rate::new(10.0, 1));
        self.store.put_limit(&kind, Source::Operator).await.unwrap();
        self.told("limit.put", "kind mail", CAME).await;
        self.store.remove_limit(&kind.target, Source::Operator).await.unwrap();
        self.told("limit.remove", "kind mail", WENT).await;
        let group = Limit::group("slow").rate(Rate::new(1.0 / 3600.0, 1));
        self.store.put_limit(&Limit::group("slow").slots(3), Source::Operator).await.unwrap();
        self.told("limit.put", "group slow", CAME).await;
        self.store.put_limit(&group, Source::Operator).await.unwrap();
        self.told("limit.put", "group slow", CHANGED).await;

        for _ in 0..2 {
            self.scene.enqueue(Scene::job().group("slow")).await;
            self.scene.store.fill_groups().await.unwrap();
        }
        let late = self.scene.enqueue(Scene::job().group("slow")).await;
        self.operate("job.release", late, Operation::new(Verb::Release)).await;
        self.store.remove_limit(&group.target, Source::Operator).await.unwrap();
        self.told("limit.remove", "group slow", WENT).await;
        for job in self.scene.claim(10).await {
            self.scene.finish(&job, End::Succeed { result: None }).await;
        }
    }

    async fn schedules(&mut self) {
        self.store.put_schedule(&rare("tax"), Source::Operator).await.unwrap();
        self.told("schedule.put", "tax", CAME).await;
        self.store.pause_schedule("tax").await.unwrap();
        self.told("schedule.pause", "tax", CHANGED).await;
        self.store.resume_schedule("tax").await.unwrap();
        self.told("schedule.resume", "tax", CHANGED).await;
        self.store.run_schedule_now("tax", None).await.unwrap();
        self.told("schedule.run", "tax", CAME).await;
        self.store.remove_schedule("tax", Source::Operator).await.unwrap();
        self.told("schedule.remove", "tax", WENT).await;
        for job in self.scene.claim(10).await {
            self.scene.finish(&job, End::Succeed { result: None }).await;
        }
    }

    async fn bulks(&mut self) {
        let mut definition = bulk::definition::Definition::new("other");
        definition.queue = "default".to_owned();
        self.store.put_bulk(&definition, Source::Config).await.unwrap();
        self.told("bulk.put", "other", CAME).await;
        let job = NewJob::new("other", &()).unwrap();
        self.store.start_bulk(&job).await.unwrap();
        self.told("bulk.start", job.id, CAME).await;
        let settings = Settings { rows_per_s: Some(100.0), ..Settings::default() };
        let change = SettingsChange { priority: Some(Priority::FIRST), ..settings.into() };
        self.store.set_bulk(job.id, &change).await.unwrap();
        self.told("bulk.set", job.id, CHANGED).await;
        self.fail_a_target(job.id).await;
        self.store.retry_bulk_failures(job.id).await.unwrap();
        self.told("bulk.retry_failures", job.id, CAME).await;
        for job in self.scene.claim(10).await {
            self.scene.finish(&job, End::Abort).await;
        }

        let mut staging = self.store.stage_bulk("targets.csv").await.unwrap();
        staging.add(vec!["{}".to_owned()]).await.unwrap();
        let staged = staging.start(&NewJob::new("other", &()).unwrap()).await.unwrap();
        self.told("bulk.start", staged.job, CAME).await;
        for job in self.scene.claim(10).await {
            self.scene.finish(&job, End::Abort).await;
        }
        self.store.sync_bulks(&[], &Scope::All).await.unwrap();
        self.told("bulk.remove", "other", WENT).await;
    }

    /// Runs a bulk job whose only target fails.
    async fn fail_a_target(&self, job: JobId) {
        let run = self.scene.claim(1).await.remove(0).run;
        assert_eq!(run.job, job);
        let store = &self.scene.store;
        store.take_bulk(run, "print", "1:1:").await.unwrap();
        let key = Key(vec!["1".into()]);
        store.freeze_bulk(run, &Survey { upper: Some(key.clone()), total: None }).await.unwrap();
        store.look_bulk(run, 10).await.unwrap();
        let failure = TargetFailure {
            pos: 0,
            key: key.clone(),
            code: "bad".to_owned(),
            message: "it is bad".to_owned(),
            at: jiff::Timestamp::UNIX_EPOCH,
            retried_by: None,
        };
        let parts =
            Parts { targets: 1, failures: vec![failure], failed: 1, cursor: Some(key), exhausted: true };
        let step = Step { from: None, parts, rows: 10, took: Duration::from_millis(1) };
        store.advance_bulk(run, &step).await.unwrap();
        store.end_bulk(run, None).await.unwrap();
    }

    async fn batches(&mut self) {
        let dag = |keys: &[(&str, &[&str])]| Dag::check(graph("close", keys)).unwrap();
        self.store.define_dag(&dag(&[("a", &[]), ("b", &["a"]), ("c", &["a"])])).await.unwrap();
        self.told("dag.define", "close", CAME).await;
        self.store.define_dag(&dag(&[("a", &[]), ("b", &["a"])])).await.unwrap();
        self.told("dag.define", "close", CHANGED).await;
        let batch = NewBatch::new("close", &()).unwrap();
        self.store.start_batch(&batch).await.unwrap();
        self.told("batch.start", batch.id, CAME).await;
        self.operate_batch("batch.abort", batch.id, BatchVerb::Abort).await;
        self.operate_batch("batch.resume", batch.id, BatchVerb::Resume).await;
        self.operate_batch("batch.mark", batch.id, BatchVerb::Mark { task: 0, state: TaskState::Succeeded })
            .await;
        self.operate_batch("batch.cancel", batch.id, BatchVerb::Cancel { tasks: vec![0, 1] }).await;
        self.operate_batch("batch.rerun", batch.id, BatchVerb::Rerun { tasks: vec![0, 1] }).await;
        let running = self.scene.claim(1).await.remove(0);
        let detail = self.operate_batch("batch.cancel", batch.id, BatchVerb::Cancel { tasks: vec![0] }).await;
        if self.acts {
            assert_eq!(detail["after"]["stopping"], 1, "a running task is asked to stop");
        }
        self.scene.finish(&running, End::Cancel).await;
        let wait = Definition::new("approval").task("ask", Task::wait(Wait::signal("approved")));
        self.store.define_dag(&Dag::check(wait).unwrap()).await.unwrap();
        self.told("dag.define", "approval", CAME).await;
        let batch = NewBatch::new("approval", &()).unwrap();
        self.store.start_batch(&batch).await.unwrap();
        self.told("batch.start", batch.id, CAME).await;
        let signal = NewSignal::new(batch.id, "approved").id("ticket-7");
        self.store.signal_batch(&signal).await.unwrap();
        let detail = self.told("batch.signal", batch.id, CHANGED).await;
        if self.acts {
            assert_eq!(detail["after"]["id"], "ticket-7");
        }
    }

    async fn operate_batch(&mut self, what: &'static str, batch: BatchId, verb: BatchVerb) -> Value {
        let operation = BatchOperation { batch, generation: None, grace: LONG, note: None, what: verb };
        self.store.operate_batch(&operation).await.unwrap();
        self.told(what, batch, CHANGED).await
    }

    async fn events(&mut self) {
        self.store.emit(&of("1")).await.unwrap();
        self.told("event.emit", "order/1", CAME).await;
        self.store.emit_many(&[of("2"), of("3"), of("4"), of("5")]).await.unwrap();
        self.told("event.emit", "", CAME).await;
        let dead = self.park().await;
        for (verb, what, order) in [
            (ParkedVerb::Retry, "parked.retry", "1"),
            (ParkedVerb::edit("{\"mended\":true}").unwrap(), "parked.edit", "2"),
        ] {
            self.store.change_parked("all", &of(order).aggregate, None, &verb).await.unwrap();
            self.told(what, format!("all order/{order}"), CHANGED).await;
        }
        self.store.change_parked("all", &of("3").aggregate, None, &ParkedVerb::Skip).await.unwrap();
        self.told("parked.skip", "all order/3", WENT).await;
        for (event, verb, what) in
            [(dead[0], DeadVerb::Retry, "dead_event.retry"), (dead[1], DeadVerb::Drop, "dead_event.drop")]
        {
            self.store.change_dead("all", event, verb).await.unwrap();
            self.told(what, format!("all {event}"), WENT).await;
        }
        self.subscriptions().await;
    }

    /// Parks three aggregates and dead-letters the events of two others. Returns these events.
    async fn park(&self) -> Vec<EventId> {
        let store = self.scene.store.as_ref();
        let (publisher, mut reader) = relay::reader(store, "all", LONG).await;
        let is_dead = |order: &str| matches!(order, "4" | "5");
        let (mut seen, mut dead) = (0, Vec::new());
        while seen < 5 {
            let page = reader.page(PageSize { events_max: 100, bytes_max: 1_000_000 }).await.unwrap();
            seen += page.events.len();
            let failures = page.events.iter().map(|event| Failure {
                event: event.id,
                deliveries: 1,
                why: "no".to_owned(),
                then: if is_dead(&event.aggregate.id) { Undelivered::DeadLetter } else { Undelivered::Halt },
            });
            reader.commit(&Outcome { failures: failures.collect(), ..Outcome::default() }).await.unwrap();
            dead.extend(page.events.iter().filter(|it| is_dead(&it.aggregate.id)).map(|event| event.id));
        }
        store.leave(&publisher).await.unwrap();
        dead
    }

    async fn subscriptions(&mut self) {
        self.scene.store.subscribe("more", Begin::Beginning).await.unwrap();
        self.store.pause_subscription("more", "the broker moves").await.unwrap();
        self.told("subscription.pause", "more", CHANGED).await;
        self.store.resume_subscription("more").await.unwrap();
        self.told("subscription.resume", "more", CHANGED).await;
        let from_the_first = Replay::Aggregate { aggregate: of("3").aggregate, from: 1 };
        self.store.replay("all", &from_the_first).await.unwrap();
        self.told("subscription.replay", "all", CHANGED).await;
        for name in ["more", "all"] {
            self.store.remove_subscription(name).await.unwrap();
            self.told("subscription.remove", name, WENT).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        while let Some(events) = self.store.prune_log(Duration::ZERO).await.unwrap() {
            if events > 0 {
                self.told("log.prune", "", CAME).await;
            }
        }
    }

    async fn inboxes(&mut self) {
        let mut consumer = Consumer::new("billing");
        self.store.put_consumer(&consumer).await.unwrap();
        self.told("consumer.put", "billing", CAME).await;
        consumer.parked_max = 7;
        self.store.put_consumer(&consumer).await.unwrap();
        self.told("consumer.put", "billing", CHANGED).await;
        self.store.expect_from("billing", &of("1").aggregate, 3).await.unwrap();
        self.told("inbox.expect", "billing order/1", CAME).await;
    }

    async fn repairs(&mut self) {
        rescue::mortal(&self.scene, vec![Scene::job()]).await;
        wait::until("the lease has expired", || async {
            let mended = self.store.repair(Check::RunningPastLease, &examine::look(), 10).await.unwrap();
            mended > 0
        })
        .await;
        self.told("doctor.repair", "running_past_lease", CAME).await;
    }
}
