//! The form that edits a job.

use axum::response::Response;
use milepost_core::actions::job::JobEditAction;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::{Priority, StartAt};
use milepost_core::listing::JobView;
use milepost_core::port::JobEdit;
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};
use serde_json::value::RawValue;

use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting};
use super::format::pretty;
use super::page::Page;
use crate::app::App;
use crate::params::Path;

/// Returns the form, if the state of the job allows it. Hidden values are shown as in the page, and are not sent unless the payload is changed.
pub(super) fn form(page: &Page, view: &JobView, is_bulk: bool) -> Option<Action> {
    let state = view.row.state;
    transition(Some(state), Verb::Edit, Readiness::Ready).ok()?;
    let form = Action::new(page, "edit", format!("/jobs/{}/edit", view.row.id), JobEditAction::Edit)
        .asks("Edit this job?");
    let form = if is_bulk {
        form
    } else {
        form.with(
            Field::shown("payload", "Payload, JSON", pretty(view.payload.get()), "").edited_as(Control::Json),
        )
    };
    let form = form
        .with(Field::shown(
            "priority",
            "Priority",
            view.row.priority.to_string(),
            "from 1 (first) to 4 (last)",
        ))
        .with(
            Field::shown("max_attempts", "Attempts", "", "as before; or the new maximum number")
                .edited_as(Control::Number),
        );
    let waits = matches!(state, JobState::Blocked | JobState::Pending | JobState::RetryWait);
    let start = waits.then(|| Field::shown("wait", "Starts in", "", "as before; or 90s, 10m, 2h, 1d"));
    let form = start.into_iter().fold(form, Action::with);
    page.viewer.operates.then_some(form)
}

/// Edits the job.
pub(super) async fn edit(app: App, Path(id): Path<JobId>, sent: Sent) -> Response {
    let edited = async {
        let view = app.store.job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        let edit = JobEdit {
            payload: payload(&sent, &view)?,
            priority: sent
                .read::<u8>("priority")?
                .filter(|given| *given != view.row.priority)
                .map(priority)
                .transpose()?,
            start: sent.wait()?.map(StartAt::After),
            max_attempts: sent.read("max_attempts")?,
            note: Some(sent.reason()?),
        };
        let state = acting(&app, &sent)?.edit_job(id, &edit).await?;
        Ok(format!("The job was edited; it is {state}."))
    };
    let edited = edited.await;
    sent.answer(edited)
}

/// Returns the payload of the form; `None` if it is as the page showed it.
fn payload(sent: &Sent, view: &JobView) -> Result<Option<Box<RawValue>>, Flash> {
    let Some(text) = sent.value("payload") else { return Ok(None) };
    let text = text.replace("\r\n", "\n");
    if text == pretty(view.payload.get()).trim() {
        return Ok(None);
    }
    let parsed = RawValue::from_string(text);
    parsed
        .map(Some)
        .map_err(|error| Flash::refused(format!("nothing was done: the payload is not JSON: {error}")))
}

fn priority(given: u8) -> Result<Priority, Flash> {
    Priority::try_from(given).map_err(|invalid| Flash::refused(format!("nothing was done: {invalid}")))
}
