//! `milepost audit`: lists who changed what.

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_cli_support::table::{Column, Field, Listing, terminal_columns};
use milepost_core::audit::{AuditEntry, AuditFilter, WHATS};
use serde_json::{Map, Value};

use crate::time::relative;

/// The action that a move records in its target store; it is not an operator action.
const MOVE: &str = "move";
/// The maximum number of characters shown for a value.
const SHOWN_MAX: usize = 40;
/// The terminal width from which all columns are shown.
const WIDE: u16 = 160;

const HELP: &str = "\
Lists the changes by operators and their tools, newest first: changes through
this command and the API, and those applied from a worker's configuration. The
actions of workers are in the history of jobs. CHANGED shows the difference
between before and after; --json shows both.

Examples:
  milepost audit
  milepost audit --subject 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c
  milepost audit --who ada@host --what queue.pause --limit 100
  milepost audit --json | jq -r '.[] | [.at, .who, .what, .subject] | @tsv'";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct AuditArgs {
    /// Only actions of this actor
    #[arg(long)]
    who: Option<String>,
    /// Only this action, as in the column WHAT, such as job.cancel
    #[arg(long, hide_possible_values = true, value_parser = what())]
    what: Option<String>,
    /// Only actions on this subject: the id of a job or a batch, the name of a queue, …
    #[arg(long)]
    subject: Option<String>,
    /// The maximum number of listed actions
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// List actions before this one, the last of the previous page
    #[arg(long, value_name = "POS")]
    before: Option<i64>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Parses the name of an audited action.
fn what() -> PossibleValuesParser {
    PossibleValuesParser::new(WHATS.iter().copied().chain([MOVE]))
}

pub(crate) async fn run(args: &AuditArgs, address: &StoreAddress) -> Result<Outcome> {
    let store = store::open(address, Schema::MustFit).await?;
    let limit = args.limit as usize;
    let filter = AuditFilter {
        who: args.who.clone(),
        what: args.what.clone(),
        subject: args.subject.clone(),
        before: args.before,
        limit: args.limit + 1,
    };
    let mut entries = store.audit_log(&filter).await?;
    let cut = entries.len() > limit;
    entries.truncate(limit);
    if args.json {
        output::json(&entries)?;
    } else if entries.is_empty() {
        output::note("no audited actions; older ones may have been deleted");
        if filter.subject.is_some() {
            output::note(
                "jobs that were created together are in one row without a subject: --what job.create",
            );
        }
    } else {
        print(&entries)?;
    }
    if let (true, Some(last)) = (cut, entries.last()) {
        output::note(format_args!(
            "only {limit} are listed; to list earlier ones, add --before {}",
            last.pos
        ));
    }
    Ok(Outcome::Done)
}

fn print(entries: &[AuditEntry]) -> Result<()> {
    let now = Timestamp::now();
    let explained = entries.iter().any(|entry| entry.why.is_some());
    let wide = terminal_columns().is_none_or(|columns| columns >= WIDE);
    let columns = [
        Some(Column::unbroken("POS")),
        Some(Column::unbroken("WHEN")),
        wide.then_some(Column::new("WHO")),
        Some(Column::unbroken("WHAT")),
        Some(Column::new("SUBJECT")),
        (wide && explained).then_some(Column::new("WHY")),
        wide.then_some(Column::new("CHANGED")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for entry in entries {
        let fields = [
            Some(Field::text(entry.pos.to_string())),
            Some(Field::text(relative(entry.at, now))),
            wide.then(|| Field::text(entry.who.replace('\n', "\u{fffd}"))),
            Some(Field::text(entry.what.replace('\n', "\u{fffd}"))),
            Some(Field::maybe(entry.subject.as_ref())),
            (wide && explained).then(|| Field::maybe(entry.why.as_ref())),
            wide.then(|| Field::text(changed(entry))),
        ];
        listing.fit(wide, fields);
    }
    Ok(listing.print_fit(wide, entries.iter().map(told))?)
}

/// Describes who changed what and why, for terminals without room for these columns.
fn told(entry: &AuditEntry) -> String {
    let why = entry.why.as_ref().map(|why| format!("why: {why}"));
    let all = [Some(entry.who.clone()), Some(changed(entry)).filter(|words| !words.is_empty()), why];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Describes the difference; the subject is not repeated.
fn changed(entry: &AuditEntry) -> String {
    let mut detail = entry.detail.clone();
    let made = detail.get("before").is_none();
    if let (true, Some(Value::Object(after)), Some(subject)) = (made, detail.get_mut("after"), &entry.subject)
    {
        after.retain(|_, value| value.as_str() != Some(subject.as_str()));
    }
    difference(&detail)
}

fn difference(detail: &Value) -> String {
    let none = Map::new();
    match (detail.get("before"), detail.get("after")) {
        (Some(Value::Array(before)), _) => format!("{} before", before.len()),
        (Some(_), None) => "removed".to_owned(),
        (before, after) => {
            let fields = |side: Option<&'_ Value>| side.and_then(Value::as_object).unwrap_or(&none).clone();
            differences(&fields(before), &fields(after), before.is_some())
        }
    }
}

fn differences(before: &Map<String, Value>, after: &Map<String, Value>, was: bool) -> String {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differs = names.into_iter().filter(|name| before.get(*name) != after.get(*name) && *name != "ids");
    let words = differs.map(|name| match (before.get(name), after.get(name)) {
        (before, Some(after)) if was => format!("{name}: {} → {}", shown(before), shown(Some(after))),
        (Some(before), None) => format!("{name}: {} → none", shown(Some(before))),
        (_, after) => format!("{name}: {}", shown(after)),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None => return "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_told_in_words() {
        let detail =
            json!({ "before": { "state": "pending", "a": 1 }, "after": { "state": "canceled", "a": 1 } });
        assert_eq!(difference(&detail), "state: pending → canceled");
        let paused = json!({ "before": {}, "after": { "paused_at": "noon" } });
        assert_eq!(difference(&paused), "paused_at: none → noon");
        let resumed = json!({ "before": { "paused_at": "noon" }, "after": {} });
        assert_eq!(difference(&resumed), "paused_at: noon → none");
    }

    #[test]
    fn what_came_and_what_went_is_told() {
        let made = json!({ "after": { "jobs": 2, "kinds": ["mail"], "ids": ["a", "b"] } });
        assert_eq!(difference(&made), "jobs: 2, kinds: [\"mail\"]");
        assert_eq!(difference(&json!({ "before": { "slots": 2 } })), "removed");
        assert_eq!(difference(&json!({ "before": [{}, {}] })), "2 before");
        let long = json!({ "after": { "spec": "x".repeat(100) } });
        assert_eq!(difference(&long).chars().count(), "spec: …".chars().count() + SHOWN_MAX);
    }
}
