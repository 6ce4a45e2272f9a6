//! Trace propagation: attempts, and the jobs and events that they create, belong to the trace of their job. No spans are recorded here, so the span id
//! does not change.

use milepost::Outcome;
use milepost_core::event::{Aggregate, Emitted, NewEvent};
use milepost_core::ident::JobId;
use milepost_core::trace::{TRACEPARENT, Traceparent};

use super::changes::events_of;
use super::runtime;
use milepost_testkit::scene::Scene;

/// The example of the W3C specification, and the same span id in another trace.
const SPAN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00";

/// Returns a span of another process.
pub fn span() -> Traceparent {
    SPAN.parse().expect("a traceparent")
}

pub async fn a_trace_goes_from_a_job_to_its_attempts_and_what_they_make(scene: Scene) {
    let store = scene.store.clone();
    let worker = runtime::start(scene.store.clone(), move |context| {
        let store = store.clone();
        async move {
            // A job that is enqueued after an await still belongs to the trace.
            let order = Aggregate::new("order", context.job().run.job.to_string());
            store.emit(&NewEvent::new(order, "paid", &())?).await?;
            let next = store.enqueue(&Scene::job()).await?;
            Ok(Outcome::Result(format!("\"{}\"", next.job)))
        }
    })
    .await;
    let mut job = runtime::job();
    job.traceparent = Some(span());
    let (traced, untraced) = (scene.enqueue(job).await, scene.enqueue(runtime::job()).await);
    scene.assert_all_succeed(&[traced, untraced]).await;
    for (job, expected) in [(traced, Some(SPAN)), (untraced, None)] {
        let view = scene.view(job).await;
        assert_eq!(view.traceparent.map(|it| it.to_string()).as_deref(), expected);
        let next: JobId =
            serde_json::from_str(view.result.expect("the job has no result").get()).expect("an id");
        let next = scene.view(next).await.traceparent.map(|it| it.to_string());
        assert_eq!(next.as_deref(), expected);
        let events = events_of(&scene.store, "order", job).await;
        let told: Vec<_> = events.iter().map(|event| event.headers.get(TRACEPARENT)).collect();
        assert_eq!(told, [expected.map(str::to_owned).as_ref()]);
    }
    worker.shutdown().await;
}

pub async fn a_claim_and_what_is_held_tell_the_trace(scene: Scene) {
    let mut job = Scene::job();
    job.traceparent = Some(span());
    let claimed = scene.running(job).await;
    assert_eq!(claimed.traceparent, Some(span()));
    let held = scene.store.held(scene.worker).await.expect("told");
    assert_eq!(held.iter().map(|job| job.traceparent).collect::<Vec<_>>(), [Some(span())]);
}

pub async fn an_event_emitted_again_in_another_trace_is_the_same(scene: Scene) {
    let first =
        NewEvent::new(Aggregate::new("order", "1"), "paid", &()).expect("JSON").header(TRACEPARENT, SPAN);
    let again = first.clone().header(TRACEPARENT, OTHER);
    scene.store.emit(&first).await.expect("emitted");
    let emitted = scene.store.emit(&again).await.expect("the repeated event was refused");
    assert_eq!(emitted, Emitted { sequence: 1, duplicate: true });
    let events = events_of(&scene.store, "order", "1").await;
    let told: Vec<_> = events.iter().map(|event| event.headers[TRACEPARENT].as_str()).collect();
    assert_eq!(told, [SPAN], "the trace in which the event was first emitted");
}
