//! Silences of alerts on the overview page, with the forms that set and end them.

use std::collections::HashMap;

use axum::response::Response;
use milepost_core::actions::alert::AlertAction;
use milepost_core::alert::{ALERTS_MAX, AlertKey, Incident, IncidentFilter, SilenceUntil};
use milepost_core::port::Store;

use super::alert::Alert;
use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting};
use super::page::Page;
use crate::app::App;

/// Adds silences, and the buttons that set and end them, to the alerts that a server records.
pub(super) async fn add(alerts: &mut [Alert], page: &Page, store: &dyn Store) {
    if alerts.is_empty() {
        return;
    }
    let open = IncidentFilter { ended: false, limit: ALERTS_MAX as u32 };
    // The alerts are more important than their silences.
    let incidents = store.incidents(&open).await.unwrap_or_default();
    let incidents: HashMap<AlertKey, Incident> =
        incidents.into_iter().map(|incident| (incident.key(), incident)).collect();
    for (place, alert) in alerts.iter_mut().enumerate() {
        let Some(incident) = incidents.get(&alert.key) else { continue };
        alert.silence.clone_from(&incident.silence);
        if page.viewer.operates {
            alert.actions.push(form(&alert.key, incident.silence.is_some(), page).among(place));
        }
    }
}

fn form(key: &AlertKey, silenced: bool, page: &Page) -> Action {
    let alert = Field::hidden("alert", key.to_string());
    if silenced {
        return Action::new(page, "unsilence", "/alerts/unsilence", AlertAction::Unsilence)
            .asks("End the silence of this alert?")
            .with(alert);
    }
    let choices = SilenceUntil::CHOICES.map(|(value, label)| (value.to_owned(), label.to_owned()));
    Action::new(page, "silence", "/alerts/silence", AlertAction::Silence)
        .asks("Silence this alert?")
        .with(alert)
        .with(
            Field::shown("for", "Duration", SilenceUntil::CHOICES[0].0, "")
                .required()
                .edited_as(Control::Choice(choices.to_vec())),
        )
}

/// Silences an alert.
pub(super) async fn silence(app: App, sent: Sent) -> Response {
    let done = async {
        let (store, key) = (acting(&app, &sent)?, key(&sent)?);
        let until: SilenceUntil = sent
            .needed("for")?
            .parse()
            .map_err(|why| Flash::refused(format!("nothing was done: the duration: {why}")))?;
        match store.silence_alert(&key, until).await? {
            true => Ok(format!("Silenced: {key}.")),
            false => Err(Flash::refused(format!("nothing was done: the alert {key} has ended"))),
        }
    };
    let done = done.await;
    sent.answer(done)
}

/// Ends the silence of an alert.
pub(super) async fn unsilence(app: App, sent: Sent) -> Response {
    let done = async {
        let (store, key) = (acting(&app, &sent)?, key(&sent)?);
        let was = store.unsilence_alert(&key).await?;
        Ok(format!("{key} is {} silenced.", if was { "no longer" } else { "not" }))
    };
    let done = done.await;
    sent.answer(done)
}

fn key(sent: &Sent) -> Result<AlertKey, Flash> {
    let key = sent.needed("alert")?.parse();
    key.map_err(|unknown| Flash::refused(format!("nothing was done: the alert: {unknown}")))
}
