//! The retention periods on the page of settings, with the forms that set and remove them.

use axum::response::Response;
use milepost_core::actions::retention::RetentionAction;
use milepost_core::error::StoreError;
use milepost_core::port::{Store, StoreResult};
use milepost_core::retention::{Keep, Retained, RetentionPeriod, RetentionPolicy};

use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::page::Page;
use crate::app::App;

/// The period of one type of data.
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) name: &'static str,
    /// The period that an operator has set.
    pub(super) stored: Option<Keep>,
    /// The default period, for a store without a period in its configuration.
    pub(super) default: Keep,
    pub(super) actions: Vec<Action>,
}

pub(super) async fn rows(store: &dyn Store, page: &Page) -> StoreResult<Vec<Row>> {
    let stored = store.stored_retention().await?;
    let row = |of: &Retained| {
        let keep = stored.iter().find(|its| its.of == *of).map(|its| its.keep);
        let removes = keep.and_then(|_| remove_form(*of, page));
        Row {
            what: of.in_words(),
            name: of.as_str(),
            stored: keep,
            default: RetentionPolicy::default().of(*of),
            actions: set_form(*of, keep, page).into_iter().chain(removes).collect(),
        }
    };
    Ok(Retained::ALL.iter().map(row).collect())
}

fn set_form(of: Retained, keep: Option<Keep>, page: &Page) -> Option<Action> {
    let known = keep.map(|keep| keep.to_string()).unwrap_or_default();
    let form = Action::new(page, format!("keep-{of}"), "/retention/set", RetentionAction::Set)
        .asks(format!("How long are {} kept?", of.in_words()))
        .with(Field::hidden("name", of.as_str()))
        .with(Field::shown("period", "Period", known, "7d, 12h or forever").required());
    page.viewer.operates.then_some(form)
}

fn remove_form(of: Retained, page: &Page) -> Option<Action> {
    let form = Action::new(page, format!("unset-{of}"), "/retention/remove", RetentionAction::Remove)
        .asks(format!("Keep {} for the configured period?", of.in_words()))
        .with(Field::hidden("name", of.as_str()));
    page.viewer.operates.then_some(form)
}

/// Stores a period.
pub(super) async fn set(app: App, sent: Sent) -> Response {
    let done = async {
        let store = acting(&app, &sent)?;
        let of = retained(&sent)?;
        let keep: Keep = sent
            .needed("period")?
            .trim()
            .parse()
            .map_err(|fault| Flash::refused(format!("nothing was done: the period: {fault}")))?;
        let period = RetentionPeriod { of, keep };
        period.check().map_err(StoreError::Retention)?;
        store.put_retention(period).await?;
        Ok(format!("Kept from now on: {}, {keep}.", of.in_words()))
    };
    let done = done.await;
    sent.answer(done)
}

/// Removes a stored period.
pub(super) async fn remove(app: App, sent: Sent) -> Response {
    let done = async {
        let (store, of) = (acting(&app, &sent)?, retained(&sent)?);
        store.remove_retention(of).await?;
        Ok(format!("Kept for the configured period from now on: {}.", of.in_words()))
    };
    let done = done.await;
    sent.answer(done)
}

fn retained(sent: &Sent) -> Result<Retained, Flash> {
    let name = sent.needed("name")?;
    name.parse()
        .map_err(|_| Flash::refused(format!("nothing was done: there is no retention period {name:?}")))
}
