//! Tests of `/v1/stream`: no change is lost or repeated.

use std::time::Duration;

use milepost_core::batch::listing::TaskFilter;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::ident::{BatchId, JobId};
use milepost_core::job::NewJob;
use milepost_core::port::Operation;
use milepost_core::token::Role;
use milepost_core::transition::Verb;
use milepost_server::{Options, StreamLimits};
use milepost_testkit::wait;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api::place::Place;

/// Maximum time to wait for an expected event.
const SOON: Duration = wait::LIMIT;

/// A server-sent event.
#[derive(Debug)]
struct Received {
    id: String,
    event: String,
    data: Value,
}

/// An open stream, read as a browser reads it.
struct Stream {
    response: Response,
    text: String,
    /// The last id, including ids without an event.
    last_id: String,
}

impl Stream {
    async fn open(place: &Place, path: &str, last_id: Option<&str>) -> Self {
        let request = place.request(Method::GET, path);
        let request = match last_id {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{:?}", response.text().await);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = Self { response, text: String::new(), last_id: String::new() };
        // The stream starts with its position.
        while stream.last_id.is_empty() {
            assert!(stream.block().await.is_none());
        }
        stream
    }

    /// Reads the next block of lines; returns it if it is an event.
    async fn block(&mut self) -> Option<Received> {
        while !self.text.contains("\n\n") {
            let piece = timeout(SOON, self.response.chunk()).await.expect("a chunk in time").unwrap();
            self.text.push_str(std::str::from_utf8(&piece.expect("the stream continues")).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").unwrap();
        let (block, rest) = (block.to_owned(), rest.to_owned());
        self.text = rest;
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        if let Some(id) = field("id: ") {
            self.last_id = id;
        }
        let data = serde_json::from_str(&field("data: ")?).unwrap();
        Some(Received { id: self.last_id.clone(), event: field("event: ").unwrap(), data })
    }

    async fn next(&mut self) -> Received {
        loop {
            if let Some(received) = self.block().await {
                return received;
            }
        }
    }

    async fn take(&mut self, events: usize) -> Vec<Received> {
        let mut all = Vec::new();
        while all.len() < events {
            all.push(self.next().await);
        }
        all
    }
}

fn jobs(received: &[Received]) -> Vec<&str> {
    received.iter().map(|received| received.data["job"].as_str().unwrap()).collect()
}

/// Creates jobs of this kind one after the other.
async fn create(place: &Place, kind: &str, jobs: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..jobs {
        ids.push(place.created(&json!({ "kind": kind })).await);
    }
    ids
}

pub(crate) async fn a_watcher_is_told_what_happens(place: Place) {
    let mut stream = Stream::open(&place, "/v1/stream", None).await;
    let id = place.created(&json!({ "kind": "mail", "queue": "post" })).await;
    let mut received = stream.next().await;
    assert_eq!(received.event, "job");
    let data = received.data.as_object_mut().unwrap();
    assert!(data.remove("at").is_some() && data.remove("pos").is_some(), "{data:?}");
    data.remove("ready_at");
    let expected = json!({ "job": id, "kind": "mail", "queue": "post", "verb": "create", "to": "pending", "attempt": 0 });
    assert_eq!(received.data, expected);
    let job: JobId = id.parse().unwrap();
    place.store.operate(job, &Operation::new(Verb::Cancel)).await.unwrap();
    let received = stream.next().await;
    assert_eq!((&received.data["from"], &received.data["to"]), (&json!("pending"), &json!("canceled")));
}

pub(crate) async fn a_watcher_that_comes_back_misses_nothing_and_hears_nothing_twice(place: Place) {
    let mut stream = Stream::open(&place, "/v1/stream", None).await;
    let first = create(&place, "mail", 6).await;
    let received = stream.take(4).await;
    assert_eq!(jobs(&received), first[..4]);
    drop(stream);
    let meanwhile = create(&place, "mail", 5).await;
    let mut stream = Stream::open(&place, "/v1/stream", Some(&received[3].id)).await;
    let after = create(&place, "mail", 2).await;
    let received = stream.take(9).await;
    let expected: Vec<&String> = first[4..].iter().chain(&meanwhile).chain(&after).collect();
    assert_eq!(jobs(&received), expected);
    // The query parameter has the same effect; a page uses it for its first stream.
    for n in [0, 3, 8] {
        let path = format!("/v1/stream?last_event_id={}", urlencode(&received[n].id));
        let mut again = Stream::open(&place, &path, None).await;
        let rest = again.take(received.len() - n - 1).await;
        assert_eq!(jobs(&rest), jobs(&received)[n + 1..]);
    }
}

fn urlencode(text: &str) -> String {
    text.replace('/', "%2F").replace(':', "%3A")
}

pub(crate) async fn a_restart_of_the_server_loses_nothing(place: Place) {
    let mut stream = Stream::open(&place, "/v1/stream", None).await;
    let first = create(&place, "mail", 2).await;
    let received = stream.take(2).await;
    assert_eq!(jobs(&received), first);
    let store = place.store.clone();
    let leaving = place.stop();
    let last = stream.next().await;
    assert_eq!((last.event.as_str(), &last.data["reason"]), ("dropped", &json!("shutting_down")));
    timeout(SOON, leaving).await.expect("streams do not delay the shutdown").unwrap().unwrap();
    let job = NewJob::new("mail", &json!({})).unwrap();
    let between = store.enqueue(&job).await.unwrap().job.to_string();
    let place = Place::serve(store).await;
    let mut stream = Stream::open(&place, "/v1/stream", Some(&stream.last_id)).await;
    let after = create(&place, "mail", 1).await;
    assert_eq!(jobs(&stream.take(2).await), [between.as_str(), &after[0]]);
}

pub(crate) async fn a_watcher_is_told_of_what_it_wants_only(place: Place) {
    let mut mails = Stream::open(&place, "/v1/stream?kind=mail", None).await;
    let mut canceled = Stream::open(&place, "/v1/stream?state=canceled&type=job", None).await;
    let mut batches = Stream::open(&place, "/v1/stream?type=batch", None).await;
    create(&place, "other", 3).await;
    let mail = create(&place, "mail", 1).await;
    let more = create(&place, "other", 1).await;
    let mut one = Stream::open(&place, &format!("/v1/stream?job={}", mail[0]), None).await;
    for id in more.iter().chain(&mail) {
        place.store.operate(id.parse().unwrap(), &Operation::new(Verb::Cancel)).await.unwrap();
    }
    assert_eq!(jobs(&mails.take(2).await), [&mail[0], &mail[0]]);
    assert_eq!(jobs(&canceled.take(2).await), [&more[0], &mail[0]]);
    assert_eq!(jobs(&one.take(1).await), [&mail[0]]);
    let received = timeout(Duration::from_millis(300), batches.next()).await;
    assert!(received.is_err(), "no batch changed: {received:?}");
}

pub(crate) async fn a_watcher_of_a_queue_is_told_of_its_jobs_only(place: Place) {
    let mut night = Stream::open(&place, "/v1/stream?queue=night", None).await;
    let mut nightly = Stream::open(&place, "/v1/stream?queue=night&kind=report", None).await;
    let mut ids = Vec::new();
    for (queue, kind) in [("day", "report"), ("night", "mail"), ("nights", "report"), ("night", "report")] {
        ids.push(place.created(&json!({ "kind": kind, "queue": queue })).await);
    }
    place.store.define_dag(&Dag::check(night_dag()).unwrap()).await.unwrap();
    place.store.start_batch(&NewBatch::new("close", &()).unwrap()).await.unwrap();
    let last = place.created(&json!({ "kind": "report", "queue": "night" })).await;
    let received = night.take(4).await;
    assert!(
        received.iter().all(|received| received.event == "job" && received.data["queue"] == "night"),
        "{received:#?}"
    );
    let task = received.iter().filter(|received| received.data["batch"].is_string()).count();
    assert_eq!(task, 1, "the filter matches the job of a task, but not the batch: {received:#?}");
    let others = received.iter().filter(|received| received.data["batch"].is_null());
    let others: Vec<&str> = others.map(|received| received.data["job"].as_str().unwrap()).collect();
    assert_eq!(others, [&ids[1], &ids[3], &last]);
    assert_eq!(jobs(&nightly.take(2).await), [&ids[3], &last]);
}

/// Returns a DAG of one task, whose jobs are in the queue `night`.
fn night_dag() -> Definition {
    let task = Task { queue: "night".to_owned(), ..Task::job("work") };
    Definition::new("close").task("only", task)
}

/// Starts a batch and aborts it; returns the job of its task.
async fn start_and_abort(place: &Place, id: BatchId) -> JobId {
    let store = place.store.as_ref();
    store.start_batch(&NewBatch { id, ..NewBatch::new("close", &()).unwrap() }).await.unwrap();
    let job = store.batch_tasks(id, &TaskFilter::default()).await.unwrap()[0].job.unwrap();
    let (grace, what) = (Duration::ZERO, BatchVerb::Abort);
    let abort = BatchOperation { batch: id, generation: None, grace, note: None, what };
    store.operate_batch(&abort).await.unwrap();
    job
}

pub(crate) async fn a_watcher_of_a_batch_is_told_of_it_and_of_the_jobs_of_its_tasks(place: Place) {
    let store = place.store.as_ref();
    store.define_dag(&Dag::check(night_dag()).unwrap()).await.unwrap();
    let (own, other) = (BatchId::new(), BatchId::new());
    let mut all = Stream::open(&place, &format!("/v1/stream?batch={own}"), None).await;
    let mut itself = Stream::open(&place, &format!("/v1/stream?batch={own}&type=batch"), None).await;
    start_and_abort(&place, other).await;
    place.created(&json!({ "kind": "work", "queue": "night" })).await;
    let job = start_and_abort(&place, own).await;
    let (of_batch, of_job) =
        (store.batch_history(own, 0, 100).await.unwrap(), store.complete_history(job).await.unwrap());
    assert!(of_batch.len() >= 2 && of_job.len() == 2, "{of_batch:#?} {of_job:#?}");
    let received = all.take(of_batch.len() + of_job.len()).await;
    assert!(
        received.iter().all(|received| received.data["batch"] == json!(own)),
        "no changes of other batches: {received:#?}"
    );
    let facts = |received: &Received| ["pos", "verb", "from", "to"].map(|name| received.data[name].clone());
    let of = |event: &str| -> Vec<[Value; 4]> {
        received.iter().filter(|received| received.event == event).map(facts).collect()
    };
    let batch: Vec<[Value; 4]> =
        of_batch.iter().map(|it| [json!(it.pos), json!(it.verb), json!(it.from), json!(it.to)]).collect();
    let jobs: Vec<[Value; 4]> =
        of_job.iter().map(|it| [json!(it.pos), json!(it.verb), json!(it.from), json!(it.to)]).collect();
    assert_eq!((of("batch"), of("job")), (batch.clone(), jobs));
    let of_its_job = |received: &Received| received.event == "batch" || received.data["job"] == json!(job);
    assert!(received.iter().all(of_its_job), "{received:#?}");
    let alone = itself.take(batch.len()).await;
    assert!(
        alone.iter().all(|received| received.event == "batch" && received.data["dag"] == "close"),
        "{alone:#?}"
    );
    assert_eq!(alone.iter().map(facts).collect::<Vec<_>>(), batch);
}

pub(crate) async fn a_position_that_cannot_be_gone_on_from_is_told(place: Place) {
    for (path, id) in [("/v1/stream", Some("4711")), ("/v1/stream?last_event_id=x", None)] {
        let request = place.request(Method::GET, path);
        let answer =
            place.send(id.into_iter().fold(request, |request, id| request.header("Last-Event-ID", id))).await;
        assert_eq!((answer.status, answer.code()), (StatusCode::BAD_REQUEST, "invalid_position"));
    }
    let answer = place.send(place.request(Method::GET, "/v1/stream?state=nonsense")).await;
    assert_eq!((answer.status, answer.code()), (StatusCode::BAD_REQUEST, "invalid_parameter"));
    for id in ["s900000000000.0", "7fa30/4000000000000000:4000000000000000:"] {
        let response =
            place.request(Method::GET, "/v1/stream").header("Last-Event-ID", id).send().await.unwrap();
        if response.status() == StatusCode::BAD_REQUEST {
            continue; // The id is a position of the other type of store.
        }
        let mut stream = Stream { response, text: String::new(), last_id: String::new() };
        let received = stream.next().await;
        assert_eq!((received.event.as_str(), &received.data["reason"]), ("reset", &json!("other_store")));
        let after = create(&place, "mail", 1).await;
        assert_eq!(jobs(&stream.take(1).await), after);
    }
}

pub(crate) async fn only_so_many_streams_are_open_for_one_client(place: Place) {
    let streams = StreamLimits { streams_per_client_max: 2, ..StreamLimits::default() };
    let place = Place::serve_with(place.store.clone(), Options { streams, ..Options::default() }).await;
    let one = Stream::open(&place, "/v1/stream", None).await;
    let _two = Stream::open(&place, "/v1/stream", None).await;
    let refused = place.get("/v1/stream").await;
    assert_eq!((refused.status, refused.code()), (StatusCode::TOO_MANY_REQUESTS, "too_many_streams"));
    let metrics = place.get("/metrics").await;
    assert!(metrics.body.as_str().unwrap().contains("milepost_streams 2"), "{:?}", metrics.body);
    drop(one);
    let opened = async {
        while place.request(Method::GET, "/v1/stream").send().await.unwrap().status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, opened).await.expect("a closed stream no longer counts towards the limit");
}

pub(crate) async fn only_so_many_streams_are_open_for_all_clients(place: Place) {
    let streams = StreamLimits { streams_max: 2, ..StreamLimits::default() };
    let place = place.beside(Options { streams, ..Options::default() }).await;
    let mut tokens = Vec::new();
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        tokens.push(place.token(role).await);
    }
    let open = async |n: usize| {
        let request = place.request(Method::GET, "/v1/stream").bearer_auth(tokens[n].reveal());
        request.send().await.unwrap()
    };
    let (first, second) = (open(0).await, open(1).await);
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
    let request = place.request(Method::GET, "/v1/stream").bearer_auth(tokens[2].reveal());
    let refused = place.send(request).await;
    assert_eq!((refused.status, refused.code()), (StatusCode::TOO_MANY_REQUESTS, "too_many_streams"));
    let why = refused.body["detail"].as_str().unwrap();
    assert!(why.contains("2 streams are open, which is the maximum"), "{why}");
    drop(first);
    let opened = async || open(2).await.status() == StatusCode::OK;
    wait::until("the closed stream no longer counts towards the limit", opened).await;
}

/// Returns the number of streams that were ended because their client was too slow.
async fn dropped(place: &Place) -> u64 {
    let metrics = place.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("milepost_streams_dropped_total "));
    let number: f64 = line.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    number as u64
}

/// Creates more jobs than the buffers between server and client can hold; returns their number.
async fn create_until_one_is_dropped(place: &Place) -> usize {
    let (name, mut created) = ("k".repeat(200), 0);
    let job = |_| {
        let job = NewJob::new(&name, &json!({})).unwrap();
        NewJob { queue: name.clone(), ..job }
    };
    while dropped(place).await == 0 {
        assert!(created < 200_000, "the client reads nothing and is not dropped");
        let many: Vec<NewJob> = (0..1_000).map(job).collect();
        created += place.store.enqueue_many(&many).await.unwrap().len();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    created
}

pub(crate) async fn who_does_not_read_is_dropped_told_why_and_goes_on_where_it_was(place: Place) {
    let streams = StreamLimits { reader_time: Duration::from_secs(5), ..StreamLimits::default() };
    let place = place.beside(Options { streams, ..Options::default() }).await;
    let mut idle = Stream::open(&place, "/v1/stream", None).await;
    let mut reads = Stream::open(&place, "/v1/stream?type=batch", None).await;
    assert_eq!(dropped(&place).await, 0);
    let created = create_until_one_is_dropped(&place).await;
    let mut received = 0;
    let last = loop {
        let event = idle.next().await;
        if event.event != "job" {
            break event;
        }
        received += 1;
    };
    assert_eq!((&*last.event, &last.data["reason"]), ("dropped", &json!("slow_reader")));
    assert!(idle.response.chunk().await.unwrap().is_none(), "the stream ends");
    assert!(received < created, "received {received} of {created} changes");
    let mut again = Stream::open(&place, "/v1/stream", Some(&idle.last_id)).await;
    again.take(created - received).await;
    let marker = create(&place, "mail", 1).await;
    assert_eq!(jobs(&again.take(1).await), marker, "changes are missing or repeated");
    assert_eq!(dropped(&place).await, 1, "only the client that did not read was dropped");
    drop(place);
    assert_eq!(reads.next().await.data["reason"], "shutting_down");
}
