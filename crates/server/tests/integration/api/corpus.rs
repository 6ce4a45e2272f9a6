//! Texts that would be markup if a page did not escape them, stored in every text field.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::audit::Actor;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::batch::start::NewBatch;
use milepost_core::bulk::definition::{Definition as BulkDefinition, Labels};
use milepost_core::bulk::key::Key;
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Parts, Rest, Survey};
use milepost_core::claim::Claim;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::event::{
    Aggregate, Begin, Event, Failure as Undone, NewEvent, Outcome, PageSize, Publisher, Undelivered,
};
use milepost_core::finish::{End, Failure, Finish, Finished};
use milepost_core::ident::{EventId, JobId, Run, WorkerId};
use milepost_core::inbox::Consumer;
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate};
use milepost_core::port::{Operation, Store};
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::transition::Verb;
use milepost_core::worker::{NewWorker, Progress, Report};
use milepost_testkit::inbox::Desk;
use milepost_testkit::{relay, wait};
use serde_json::{Value, json};

/// Each payload breaks out of one kind of context. None contains `*`, which limits refuse in names of groups, or a control
/// character, which all names refuse.
pub(crate) const PAYLOADS: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>",
    "' autofocus onfocus='alert(3)",
    "</script></title></textarea></pre><script>alert(4)</script>",
    "javascript:alert(5)//",
    "--><!--]]><![CDATA[<b onclick=alert(6)>",
    "<svg/onload=alert(7)>&lt;i&gt;&#60;u&#62;",
    "{{7 / 7}}{% raw %}${alert(8)}<%= 8 %>",
];

/// Fields that pages show as text.
pub(crate) const SHOWN: [&str; 55] = [
    "who",
    "why",
    "kind",
    "queue",
    "group",
    "key",
    "code",
    "message",
    "code of a retry",
    "message of a retry",
    "progress",
    "note",
    "worker",
    "bulk job",
    "type",
    "category",
    "group of bulk jobs",
    "queue of bulk jobs",
    "place",
    "file",
    "key of a bulk job",
    "target",
    "cursor",
    "last target",
    "code of a target",
    "message of a target",
    "throttle",
    "why a bulk job stopped",
    "limited kind",
    "limited group",
    "schedule",
    "kind of a schedule",
    "dag",
    "task",
    "later task",
    "kind of a task",
    "key of a batch",
    "why a batch stopped",
    "aggregate type",
    "parked aggregate",
    "dead aggregate",
    "event type",
    "subscription",
    "publisher",
    "why it was not published",
    "why the sink is down",
    "stopped subscription",
    "why a subscription stopped",
    "consumer",
    "aggregate of a letter",
    "patient consumer",
    "aggregate that waits",
    "type of an inbox",
    "token",
    "who made a token",
];

/// Fields that pages show as JSON.
pub(crate) const SHOWN_AS_JSON: [&str; 7] =
    ["payload", "result", "checkpoint", "parameters", "input", "event payload", "letter payload"];

/// Longer than a test.
const LONG: Duration = Duration::from_secs(600);

/// Returns the value for a field. The payload comes first, because a link or an attribute value would begin there.
pub(crate) fn text(payload: &str, field: &str) -> String {
    format!("{payload}~{field}")
}

/// Stores one payload.
struct Filler<'a> {
    payload: &'a str,
    desk: &'a Desk,
    store: Arc<dyn Store>,
}

/// Stores a payload in every field.
pub(crate) async fn fill(desk: &Desk, payload: &str) {
    let actor = Actor::new(text(payload, "who")).unwrap().because(Some(&text(payload, "why"))).unwrap();
    let filler = Filler { payload, desk, store: desk.store.acting_as(actor) };
    filler.jobs().await;
    filler.bulk_jobs().await;
    filler.limits_and_schedules().await;
    filler.batches().await;
    filler.events().await;
    filler.inboxes().await;
}

impl Filler<'_> {
    fn text(&self, field: &str) -> String {
        text(self.payload, field)
    }

    fn json(&self, field: &str) -> Value {
        let text = self.text(field);
        json!({ (text.as_str()): text })
    }

    fn failure(&self, code: &str, message: &str) -> Failure {
        Failure { code: self.text(code), message: self.text(message) }
    }

    /// Registers a worker and claims jobs.
    async fn claimed(&self, queue: &str, kind: &str, limit: u32) -> (WorkerId, Vec<Run>) {
        let (queues, kinds) = (vec![queue.to_owned()], vec![kind.to_owned()]);
        let (name, lease) = (self.text("worker"), LONG);
        let worker =
            NewWorker { name, queues: queues.clone(), kinds: kinds.clone(), lease, ..NewWorker::default() };
        let worker = self.store.register_worker(&worker).await.unwrap();
        let claim = Claim { worker, claim_id: 1, queues, kinds, limit, thorough: true };
        let runs: Vec<Run> = self.store.claim(&claim).await.unwrap().iter().map(|job| job.run).collect();
        assert_eq!(runs.len(), limit as usize);
        (worker, runs)
    }

    /// Creates jobs of which one fails, one is retried, one succeeds, one is running, one is canceled and one waits.
    async fn jobs(&self) {
        let (queue, kind) = (self.text("queue"), self.text("kind"));
        let job = || NewJob::new(kind.clone(), &self.json("payload")).unwrap().queue(queue.clone());
        let named = job().key(self.text("key")).group(self.text("group"));
        let made = self.store.enqueue_many(&[named, job(), job(), job()]).await.unwrap();
        let ids: Vec<JobId> = made.iter().map(|made| made.job).collect();
        let (worker, runs) = self.claimed(&queue, &kind, 4).await;
        let run = |n: usize| *runs.iter().find(|run| run.job == ids[n]).unwrap();
        let again = self.failure("code of a retry", "message of a retry");
        let ends = [
            End::Fail { failure: self.failure("code", "message") },
            End::Retry { delay: LONG, failure: again },
            End::Succeed { result: Some(self.json("result").to_string()) },
        ];
        let finishes: Vec<Finish> = (0..)
            .zip(ends)
            .map(|(n, end)| Finish { run: run(n), end, grouped: n == 0, task: false })
            .collect();
        let finished = self.store.finish_many(worker, &finishes).await.unwrap();
        assert_eq!(finished, [Finished::Accepted; 3]);
        let progress = Progress { done: 1, total: Some(2), message: Some(self.text("progress")) };
        let checkpoint = Some(self.json("checkpoint").to_string());
        let report = Report { run: run(3), progress: Some(progress), checkpoint };
        assert_eq!(self.store.report_many(&[report]).await.unwrap(), [true]);
        let canceled = self.store.enqueue(&job()).await.unwrap().job;
        let cancel = Operation::new(Verb::Cancel).note(self.text("note"));
        self.store.operate(canceled, &cancel).await.unwrap();
        self.store.enqueue(&job().group(self.text("group"))).await.unwrap();
        self.store.pause_queue(&queue, true).await.unwrap();
    }

    /// Creates a running and throttled run, an aborted run, and a run over a file.
    async fn bulk_jobs(&self) {
        let labels = Labels { r#type: Some(self.text("type")), category: Some(self.text("category")) };
        let definition = BulkDefinition {
            labels,
            group: self.text("group of bulk jobs"),
            queue: self.text("queue of bulk jobs"),
            place: Some(self.text("place")),
            ..BulkDefinition::new(self.text("bulk job"))
        };
        self.store.put_bulk(&definition, Source::Operator).await.unwrap();
        let job = || definition.direct(NewJob::new("", &self.json("parameters")).unwrap());
        self.store.start_bulk(&job().key(self.text("key of a bulk job"))).await.unwrap();
        let stopped = self.store.start_bulk(&job()).await.unwrap().job;
        let abort = Operation::new(Verb::Abort).note(self.text("why a bulk job stopped"));
        self.store.operate(stopped, &abort).await.unwrap();
        let mut staging = self.store.stage_bulk(&self.text("file")).await.unwrap();
        staging.add(vec!["{}".to_owned()]).await.unwrap();
        staging.start(&job()).await.unwrap();
        let (_, runs) = self.claimed(&definition.queue, &definition.name, 1).await;
        self.chunk(runs[0]).await;
    }

    /// Applies a chunk with a failed target; then the run is throttled.
    async fn chunk(&self, run: Run) {
        let key = |field: &str| Key(vec![json!(self.text(field))]);
        self.store.take_bulk(run, "", "1:1:").await.unwrap();
        let survey = Survey { upper: Some(key("last target")), total: None };
        self.store.freeze_bulk(run, &survey).await.unwrap();
        self.store.look_bulk(run, 3).await.unwrap();
        let mut parts = Parts { targets: 3, cursor: Some(key("cursor")), ..Parts::default() };
        parts.fail(key("target"), self.text("code of a target"), self.text("message of a target"));
        let step = Step { from: None, parts, rows: 3, took: Duration::from_millis(5) };
        self.store.advance_bulk(run, &step).await.unwrap();
        let rest = Rest { throttle: Some(self.text("throttle")), held: Duration::from_secs(1) };
        self.store.rest_bulk(run, &rest).await.unwrap();
    }

    async fn limits_and_schedules(&self) {
        let kind = Limit::kind(self.text("limited kind"), Rate::new(1.0, 1));
        let group = Limit::group(self.text("limited group")).slots(2);
        for limit in [kind, group] {
            self.store.put_limit(&limit, Source::Operator).await.unwrap();
        }
        let hourly = Spec::every(Duration::from_secs(3600)).unwrap();
        let job = NewJob::new(self.text("kind of a schedule"), &self.json("payload")).unwrap();
        let schedule = Schedule::new(self.text("schedule"), hourly, job);
        self.store.put_schedule(&schedule, Source::Operator).await.unwrap();
    }

    async fn batches(&self) {
        let (dag, first, kind) = (self.text("dag"), self.text("task"), self.text("kind of a task"));
        let later = Task::job(kind.clone()).after([first.clone()]);
        let definition =
            Definition::new(dag.clone()).task(first, Task::job(kind)).task(self.text("later task"), later);
        self.store.define_dag(&Dag::check(definition).unwrap()).await.unwrap();
        let batch = NewBatch::new(dag, &self.json("input")).unwrap().key(self.text("key of a batch"));
        let batch = self.store.start_batch(&batch).await.unwrap().batch;
        let abort = BatchOperation {
            batch,
            generation: None,
            grace: Duration::ZERO,
            note: Some(self.text("why a batch stopped")),
            what: BatchVerb::Abort,
        };
        self.store.operate_batch(&abort).await.unwrap();
    }

    /// A subscription whose sink is down has a parked and a dead event; another subscription is paused.
    async fn events(&self) {
        let store = self.store.as_ref();
        let subscription = self.text("subscription");
        // The subscription begins now, so that it does not contain the events of earlier payloads.
        store.subscribe(&subscription, Begin::Now).await.unwrap();
        let publisher = relay::publisher(store, &subscription, LONG).await;
        let publisher = Publisher { label: self.text("publisher"), ..publisher };
        let mut reader = store.reader(publisher.clone());
        reader.balance().await.unwrap();
        let of = |id: &str| Aggregate::new(self.text("aggregate type"), self.text(id));
        let (parked, dead) = (of("parked aggregate"), of("dead aggregate"));
        let event = |of: &Aggregate| {
            NewEvent::new(of.clone(), self.text("event type"), &self.json("event payload")).unwrap()
        };
        store.emit_many(&[event(&parked), event(&dead)]).await.unwrap();
        let undone = |event: &Event| Undone {
            event: event.id,
            deliveries: 1,
            why: self.text("why it was not published"),
            then: if event.aggregate == parked { Undelivered::Halt } else { Undelivered::DeadLetter },
        };
        let mut seen = 0;
        while seen < 2 {
            let page = reader.page(PageSize { events_max: 100, bytes_max: 1_000_000 }).await.unwrap();
            seen += page.events.len();
            let failures = page.events.iter().map(undone).collect();
            reader.commit(&Outcome { failures, ..Outcome::default() }).await.unwrap();
        }
        store.report_sink(&publisher, Some(self.text("why the sink is down").as_str())).await.unwrap();
        let stopped = self.text("stopped subscription");
        store.subscribe(&stopped, Begin::Now).await.unwrap();
        store.pause_subscription(&stopped, &self.text("why a subscription stopped")).await.unwrap();
    }

    /// One inbox has a dead letter, another one a waiting event.
    async fn inboxes(&self) {
        let consumer = Consumer { gap_wait: Duration::ZERO, ..Consumer::new(self.text("consumer")) };
        self.store.put_consumer(&consumer).await.unwrap();
        self.desk.take(&consumer.name, &self.second_of("aggregate of a letter")).await;
        let given_up =
            async || self.store.give_up_gaps(Some(consumer.name.as_str()), 100).await.unwrap().letters == 1;
        wait::until("the event is dead-lettered", given_up).await;
        self.desk.take(&self.text("patient consumer"), &self.second_of("aggregate that waits")).await;
    }

    /// Returns the second event of an aggregate whose first event never arrived.
    fn second_of(&self, aggregate: &str) -> Event {
        Event {
            id: EventId::new(),
            aggregate: Aggregate::new(self.text("type of an inbox"), self.text(aggregate)),
            sequence: 2,
            event_type: self.text("event type"),
            payload: serde_json::value::to_raw_value(&self.json("letter payload")).unwrap(),
            headers: BTreeMap::new(),
            emitted_at: Timestamp::now(),
        }
    }
}
