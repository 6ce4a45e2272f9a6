//! Waits of tasks on the page of a batch, and the forms that send their signals.

use axum::response::Response;
use milepost_core::actions::batch::WaitAction;
use milepost_core::batch::listing::{BatchView, TaskView};
use milepost_core::batch::wait::{NewSignal, SignalResult, WaitView};
use milepost_core::dag::state::TaskState;
use milepost_core::dag::wait::{CHOICE, OnTimeout};
use milepost_core::ident::BatchId;
use serde_json::Value;

use super::batch_tasks::BatchTasks;
use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting, once};
use super::page::Page;
use super::typed_fields;
use crate::app::App;
use crate::params::Path;
use crate::problem::Problem;

/// The field with the payload, or with the members without a separate field.
const PAYLOAD: &str = "payload";
/// The maximum number of displayed waits.
const WAITS: usize = 20;

/// A task that waits.
pub(super) struct Waiting {
    pub(super) key: String,
    pub(super) wait: WaitView,
    /// What follows after the time of the wait.
    pub(super) then: &'static str,
    /// Whether the batch was aborted while the task waited.
    pub(super) is_aborted: bool,
    pub(super) actions: Vec<Action>,
}

/// Returns the first tasks of a batch that wait.
pub(super) fn waiting(board: &BatchTasks, row: &BatchView, page: &Page) -> Vec<Waiting> {
    let waits = board.tasks.iter().filter_map(|task| Some((task, task.wait.clone()?)));
    waits.take(WAITS).enumerate().map(|(place, (task, wait))| of(task, wait, place, row, page)).collect()
}

fn of(task: &TaskView, wait: WaitView, place: usize, row: &BatchView, page: &Page) -> Waiting {
    let then = match (&wait.signal, wait.on_timeout) {
        (None, _) => "then it continues",
        (_, OnTimeout::Fail) => "then the task fails",
        (_, OnTimeout::Skip) => "then the task is skipped",
        (_, OnTimeout::Succeed) => "then the task succeeds without an output",
    };
    let actions = if page.viewer.operates { forms(&task.key, &wait, place, row, page) } else { Vec::new() };
    Waiting { key: task.key.clone(), then, is_aborted: task.state == TaskState::Aborted, actions, wait }
}

/// Returns a form for each choice, or one form.
fn forms(key: &str, wait: &WaitView, place: usize, row: &BatchView, page: &Page) -> Vec<Action> {
    let Some(signal) = &wait.signal else { return Vec::new() };
    let form = |number: usize| {
        let url = format!("/batches/{}/signal", row.id);
        let form = Action::new(page, format!("signal-{place}-{number}"), url, WaitAction::Signal)
            .with(Field::hidden("name", signal));
        fields(wait).into_iter().fold(form, Action::with).with(once())
    };
    if wait.choices.is_empty() {
        return vec![form(0).asks(format!("Send {signal} to {key}?"))];
    }
    let choices = wait.choices.iter().enumerate();
    let of_choice = |(number, choice): (usize, &String)| {
        let title = title(choice);
        form(number)
            .asks(format!("{title}: {key}?"))
            .titled(title)
            .with(Field::hidden(format!("text:{CHOICE}"), choice))
    };
    choices.map(of_choice).collect()
}

/// Returns the fields of the payload, without the choice.
fn fields(wait: &WaitView) -> Vec<Field> {
    let of_schema = wait.schema.as_ref().and_then(|schema| {
        let mut schema = schema.clone();
        if !wait.choices.is_empty()
            && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
        {
            properties.remove(CHOICE);
        }
        typed_fields::fields(&schema, PAYLOAD)
    });
    of_schema.unwrap_or_else(|| {
        let label =
            if wait.choices.is_empty() { "Payload, JSON" } else { "Other members of the payload, JSON" };
        vec![Field::shown(PAYLOAD, label, "", "none").edited_as(Control::Json)]
    })
}

/// Returns a choice as the label of a button.
fn title(choice: &str) -> String {
    let mut chars = choice.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Sends a signal.
pub(super) async fn signal(app: App, Path(id): Path<BatchId>, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let signal = new_signal(id, &sent)?;
        Ok(match store.signal_batch(&signal).await.map_err(Problem::from)? {
            SignalResult::Accepted => "Sent. The task continues in a moment.".to_owned(),
            SignalResult::Duplicate => "This form was submitted before; nothing was changed.".to_owned(),
            SignalResult::Late => "Nothing was done: the task has ended.".to_owned(),
        })
    };
    let done = done.await;
    sent.answer(done)
}

fn new_signal(batch: BatchId, sent: &Sent) -> Result<NewSignal, Flash> {
    let payload = typed_fields::value(sent, PAYLOAD)?;
    let mut signal = NewSignal::new(batch, sent.needed("name")?);
    // Without any field, the payload is null, as everywhere else.
    if payload.get() != "{}" {
        signal.payload = payload;
    }
    if let Some(submission) = sent.submission() {
        signal.id = format!("form:{submission}");
    }
    Ok(signal)
}
