//! `/bulk-definitions/{name}`: a bulk job with its targets, its effect, its settings and its latest runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use askama::Template;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::listing::BulkFilter;
use milepost_core::bulk::staged::ColumnType;
use milepost_core::bulk::statements::Statements;

use super::bulk_speed;
use super::bulks::{Row, labels_of};
use super::form::Action;
use super::format::count;
use super::page::{Drawn, Page, draw};
use super::start;
use crate::api::bulk::definition;
use crate::app::App;
use crate::params::{Path, encoded};

/// Number of listed runs.
const RUNS: u32 = 10;

#[derive(Template)]
#[template(path = "bulk_definition.html")]
struct DefinitionPage {
    page: Page,
    definition: Definition,
    labels: String,
    start: Option<Action>,
    dry_run: Option<Action>,
    /// The names and values of its settings.
    facts: Vec<(&'static str, String)>,
    statements: Statements,
    /// The names and types of the columns of its file.
    columns: Vec<(String, ColumnType)>,
    /// A command that starts it.
    command: String,
    runs: Vec<Row>,
}

impl DefinitionPage {
    fn encoded(&self, text: &str) -> String {
        encoded(text)
    }
}

pub(super) async fn show(app: App, Path(name): Path<String>, page: Page) -> Drawn {
    let store = app.store.as_ref();
    let definition = definition(&name, store).await?;
    let filter = BulkFilter { name: Some(name), limit: RUNS, ..BulkFilter::default() };
    let runs = store.bulks(&filter).await?;
    let columns = definition.columns.clone().map(BTreeMap::from).unwrap_or_default();
    Ok(draw(&DefinitionPage {
        labels: labels_of(&definition),
        start: start::run_form(&page, &definition, 0),
        dry_run: start::dry_run_form(&page, &definition),
        facts: facts(&definition),
        statements: definition.statements.clone().unwrap_or_default(),
        columns: columns.into_iter().collect(),
        command: command(&definition),
        runs: runs.into_iter().map(|view| Row::of(view, &app.paces, &page)).collect(),
        definition,
        page,
    }))
}

fn facts(its: &Definition) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("group", format!("{}, one run at a time", its.group)),
        ("queue", format!("{}, priority {}", its.queue, its.priority.get())),
        ("attempts", format!("at most {}", its.max_attempts)),
        ("after a crash", its.effects.in_words().to_owned()),
    ];
    facts.extend(bulk_speed::facts(its.load, &its.sizing));
    facts.push(("error budget", format!("{} failed targets", count(its.failures_max))));
    facts.extend(its.then.clone().map(|next| ("then", next)));
    facts
}

/// Returns a command that starts a run, with a placeholder for each parameter.
fn command(its: &Definition) -> String {
    let mut command = format!("milepost bulk start {}", its.name);
    if its.columns.is_some() {
        command.push_str(" --from FILE");
    }
    for name in its.statements.iter().flat_map(|statements| statements.parameters.keys()) {
        let _ = write!(command, " --param {name}=…");
    }
    command
}
