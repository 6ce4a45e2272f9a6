//! `/settings`: server settings, limits, and checks of the store.

use askama::Template;
use futures::stream::{self, StreamExt};
use milepost_core::doctor::{Check, Cost, Finding, Look, PATIENCE_DEFAULT};
use milepost_core::limit::LimitView;
use serde::Deserialize;

use super::form::Action;
use super::page::{Drawn, Page, draw};
use super::{limits, retention};
use crate::api::doctor;
use crate::app::App;
use crate::params::Query;

/// Time limit of a check.
const CHECK_MAX: std::time::Duration = std::time::Duration::from_secs(5);
/// Maximum number of concurrent checks, since other requests use the store, too.
const AT_ONCE: usize = 2;
/// Checks of the database's configuration, which run on every view of the page; all of them are quick.
const OF_SETTINGS: [Check; 8] = [
    Check::WeakDurability,
    Check::Promoted,
    Check::CommitsUnsafe,
    Check::AutovacuumOff,
    Check::ClockDifference,
    Check::MissingPrivilege,
    Check::LogHeldBack,
    Check::DiskShort,
];

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// Whether to run all quick checks.
    #[serde(default)]
    examine: String,
}

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    page: Page,
    about: Vec<(&'static str, String)>,
    /// The limits with their buttons; `None` while they are being counted.
    limits: Option<Vec<(LimitView, Vec<Action>)>>,
    set_limit: Option<Action>,
    retention: Vec<retention::Row>,
    examined: bool,
    checks: usize,
    findings: Vec<Finding>,
    /// Checks that failed to run.
    unable: Vec<(&'static str, String)>,
}

pub(super) async fn show(app: App, Query(asked): Query<Asked>, page: Page) -> Drawn {
    let store = app.store.as_ref();
    let examined = !asked.examine.is_empty();
    let wanted =
        |check: &Check| if examined { check.cost() == Cost::Quick } else { OF_SETTINGS.contains(check) };
    let checks: Vec<Check> = app.store.checks().into_iter().filter(wanted).collect();
    let look = Look { now: page.now, patience: PATIENCE_DEFAULT, time_limit: CHECK_MAX };
    let _turn = examined.then(|| doctor::turn(&app)).transpose()?;
    let answers = stream::iter(checks.clone()).map(|check| app.store.examine(check, &look));
    let answers: Vec<_> = answers.buffered(AT_ONCE).collect().await;
    let (mut findings, mut unable) = (Vec::new(), Vec::new());
    for (check, answer) in checks.iter().zip(answers) {
        match answer {
            Ok(found) => findings.extend(found),
            Err(error) => unable.push((check.as_str(), error.to_string())),
        }
    }
    let limits = app.known.limits(&app.store).await?.map(|views| {
        let with_actions = |view: LimitView| {
            let actions = limits::edit(&view, &page).into_iter().chain(limits::lift(&view, &page)).collect();
            (view, actions)
        };
        views.into_iter().map(with_actions).collect()
    });
    let mut about = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    about.extend(app.about.iter().cloned());
    let set_limit = limits::set_any(&page);
    let retention = retention::rows(store, &page).await?;
    Ok(draw(&Settings {
        page,
        about,
        limits,
        set_limit,
        retention,
        examined,
        checks: checks.len(),
        findings,
        unable,
    }))
}
