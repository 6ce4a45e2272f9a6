//! Checks of a file's bulk jobs that need no database.

use std::collections::HashSet;

use milepost::bulk::{ColumnType, Columns};
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::{Apply, Dialect, InvalidSql, Source};
use milepost_core::bulk::statements::PROVIDED;
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, QUEUE_DEFAULT};

use super::super::document::{Entry, Node, Value};
use super::super::fault::Faults;
use super::super::{http, kind, schedule};
use super::{emit, throttle, window};
use crate::nearest::nearest;

/// The operations; a bulk job has exactly one of these keys.
pub(super) const WAYS: [&str; 5] = ["apply", "enqueue", "emit", "http", "exec"];

const SOURCE_REMEDY: &str = "a source looks like: select id, name from member where id > :cursor order by id limit :limit (docs/BULK.md)";
const APPLY_REMEDY: &str =
    "an apply looks like: insert into note (run, member) select :bulk_id, id from chunk (docs/BULK.md)";

/// The other sections and settings that bulk jobs are checked against.
pub(crate) struct Surroundings<'a> {
    pub(crate) kinds: Option<&'a Node>,
    pub(crate) schedules: Option<&'a Node>,
    pub(crate) databases: Option<&'a Node>,
    /// The SQL dialect for targets in the store's own database.
    pub(crate) dialect: Dialect,
}

pub(crate) fn check(bulks: Option<&Node>, around: &Surroundings<'_>, faults: &mut Faults) {
    let entries = bulks.map(Node::entries).unwrap_or_default();
    for entry in entries {
        check_names(entry, entries, around, faults);
        check_targets(entry, faults);
        check_ways(entry, faults);
        check_secrets(&entry.node, faults);
        let dialect = check_database(&entry.node, around, faults);
        let sql = check_sql(&entry.node, dialect, faults);
        check_sizes(&entry.node, faults);
        check_windows(&entry.node, faults);
        throttle::check(entry.node.get("throttle"), dialect, faults);
        check_then(entry, entries, faults);
        check_kinds_of_schedules(entry, around.schedules, faults);
        check_schedule(entry, &sql, around, faults);
    }
}

fn check_names(
    Entry { key: name, at, node: bulk }: &Entry,
    entries: &[Entry],
    around: &Surroundings<'_>,
    faults: &mut Faults,
) {
    const REMEDY: &str = "give it a name of 1 to 200 bytes without control characters";
    if let Err(why) = kind::check_name("bulk job", name) {
        faults.add(*at, why, REMEDY);
    }
    if around.kinds.is_some_and(|kinds| kinds.get(name).is_some()) {
        let what = format!(
            "{name} is both a bulk job and a kind: runs of a bulk job are jobs of the kind with its name"
        );
        faults.add(*at, what, "rename one of the two");
    }
    let children = bulk.get("enqueue");
    let child = |key: &str| children.and_then(|children| children.get(key));
    let named = [
        ("group", bulk.get("group")),
        ("queue", bulk.get("queue")),
        ("kind", child("kind")),
        ("queue", child("queue")),
        ("group", child("group")),
    ];
    for (field, node) in named {
        let Some((node, name)) = node.and_then(|node| Some((node, node.text()?))) else { continue };
        if let Err(why) = kind::check_name(field, name) {
            faults.add(node.span.start, why, REMEDY);
        }
    }
    if let Some((node, kind)) = child("kind").and_then(|node| Some((node, node.text()?)))
        && entries.iter().any(|entry| entry.key == kind)
    {
        let what = format!("{kind} is a bulk job, which runs in its group and has no targets for payload");
        faults.add(node.span.start, what, "give a kind, or write then = \"…\" to start another bulk job");
    }
}

/// Refuses schedules whose jobs have the kind of this bulk job, but not its settings: no worker would ever take them.
fn check_kinds_of_schedules(bulk: &Entry, schedules: Option<&Node>, faults: &mut Faults) {
    let text = |node: &Node, key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
    let attempts = |node: &Node| {
        let given = node.get("max_attempts").and_then(Node::integer);
        given.map_or(MAX_ATTEMPTS_DEFAULT, |given| u32::try_from(given).unwrap_or(u32::MAX))
    };
    let mut definition = Definition { max_attempts: attempts(&bulk.node), ..Definition::new(&bulk.key) };
    definition.queue = text(&bulk.node, "queue").unwrap_or(definition.queue);
    definition.group = text(&bulk.node, "group").unwrap_or(definition.group);
    for schedule in schedules.map(Node::nodes).unwrap_or_default() {
        let Some(kind) = schedule.get("kind").filter(|kind| kind.text() == Some(&bulk.key)) else { continue };
        let queue = text(schedule, "queue").unwrap_or_else(|| QUEUE_DEFAULT.to_owned());
        if !definition.directs(&queue, text(schedule, "group").as_deref(), attempts(schedule)) {
            let what = format!("{} is a bulk job: no worker would run the jobs of this schedule", bulk.key);
            faults.add(kind.span.start, what, format!("write schedule = … in [bulk.{}] instead", bulk.key));
        }
    }
}

/// Checks the targets: either a source with its key, or the columns of a file.
fn check_targets(Entry { key: name, at, node: bulk }: &Entry, faults: &mut Faults) {
    let Some(columns) = bulk.get("columns") else {
        for (part, example) in [("source", "source = \"select …\""), ("key", "key = [\"…\"]")] {
            if bulk.is_table() && bulk.get(part).is_none() {
                let what = format!("the bulk job {name} has no {part}");
                let remedy = format!("add {example}, or columns = {{ … }} for a bulk job over a file");
                faults.add(*at, what, remedy);
            }
        }
        return;
    };
    for part in ["source", "key"] {
        if let Some(node) = bulk.get(part) {
            let what = format!("the bulk job {name} has both columns and {part}");
            let remedy = "columns are for targets from a file, source and key for targets from tables: keep one of the two";
            faults.add(node.span.start, what, remedy);
        }
    }
    let mut known: Vec<&str> = Vec::new();
    for entry in columns.entries() {
        known.push(&entry.key);
        // Checks each name together with those before it, so that a fault is reported at its position.
        let named = known.iter().map(|name| (*name, ColumnType::Text));
        if let Err(error) = Columns::new(named) {
            faults.add(entry.at, error.to_string(), "use the column names of the file's header");
            known.pop();
        }
    }
    if columns.is_table() && columns.entries().is_empty() {
        faults.add(columns.span.start, "the columns are empty", "list the columns that the bulk job reads");
    }
}

/// Refuses values of the environment in SQL, which often are secrets: SQL is stored and shown, and the database repeats parts of it in its errors.
fn check_secrets(bulk: &Node, faults: &mut Faults) {
    let probe = bulk.get("throttle").and_then(|throttle| throttle.get("sql"));
    let texts = [bulk.get("source"), bulk.get("apply"), probe];
    for text in texts.into_iter().flatten().filter(|text| text.is_from_environment()) {
        let what = "SQL cannot contain ${NAME}: it is stored and shown, and errors of the database repeat parts of it";
        faults.add(
            text.span.start,
            what,
            "write $${ for a literal ${, and pass other values as parameters, such as :name",
        );
    }
}

fn check_ways(Entry { key: name, at, node: bulk }: &Entry, faults: &mut Faults) {
    let mut ways: Vec<(&str, &Node)> = WAYS.iter().filter_map(|way| Some((*way, bulk.get(way)?))).collect();
    ways.sort_by_key(|(_, node)| node.span.start);
    match ways.as_slice() {
        [] if bulk.is_table() => faults.add(
            *at,
            format!("the bulk job {name} has no apply, enqueue, emit, http or exec: it would do nothing"),
            "add apply = \"insert into … select … from chunk\", or enqueue = { kind = \"…\" }",
        ),
        [(first, _), (second, node), ..] => faults.add(
            node.span.start,
            format!("the bulk job {name} has both {first} and {second}"),
            "keep one of the two; use a second bulk job for the other, started by then = \"…\"",
        ),
        _ => {}
    }
    http::check(bulk.get("http"), faults);
    emit::check(bulk, faults);
}

/// Returns the SQL dialect: that of the store, or of the database that the bulk job names.
fn check_database(bulk: &Node, around: &Surroundings<'_>, faults: &mut Faults) -> Dialect {
    let Some(node) = bulk.get("database") else { return around.dialect };
    let entries = around.databases.map(Node::entries).unwrap_or_default();
    let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    if let Some(name) = node.text().filter(|name| !names.contains(name)) {
        let remedy = match (nearest(name, &names), names.as_slice()) {
            (Some(nearest), _) => format!("did you mean {nearest}?"),
            (None, []) => format!("add [database.{name}] with url = \"postgres://…\""),
            (None, names) => format!("databases of this file are {}", names.join(", ")),
        };
        faults.add(node.span.start, format!("there is no database {name} in this file"), remedy);
    }
    if bulk.get("columns").is_some() {
        let what = "the rows of a file are staged in the store, where another database cannot read them";
        faults.add(node.span.start, what, "remove database; the rows are processed in the store's database");
    }
    Dialect::Postgres
}

fn texts(list: Option<&Node>) -> Option<Vec<String>> {
    list?.nodes().iter().map(|node| node.text().map(str::to_owned)).collect()
}

/// The source and the apply of a bulk job, if they could be parsed.
#[derive(Default)]
struct Sql {
    source: Option<Source>,
    apply: Option<Apply>,
}

fn check_sql(bulk: &Node, dialect: Dialect, faults: &mut Faults) -> Sql {
    let mut read = Sql::default();
    let over_file = bulk.get("columns").is_some();
    let key = if over_file { Some(Columns::key()) } else { texts(bulk.get("key")) };
    let Some(key) = key else { return read };
    if let Some((node, sql)) =
        bulk.get("source").filter(|_| !over_file).and_then(|node| Some((node, node.text()?)))
    {
        match Source::parse(sql, &key, dialect) {
            Ok(source) => read.source = Some(source),
            // The empty list was reported already.
            Err(InvalidSql::NoKey) => {}
            Err(error) => {
                faults.add(node.span.start, InvalidBulk::Source(error).to_string(), SOURCE_REMEDY);
            }
        }
    }
    if let Some((node, sql)) = bulk.get("apply").and_then(|node| Some((node, node.text()?))) {
        match Apply::parse(sql, &key, dialect) {
            Ok(apply) => read.apply = Some(apply),
            Err(error) => {
                faults.add(node.span.start, InvalidBulk::Apply(error).to_string(), APPLY_REMEDY);
            }
        }
    }
    read
}

fn check_sizes(bulk: &Node, faults: &mut Faults) {
    let Some(chunk) = bulk.get("chunk") else { return };
    let rows = |key: &str| chunk.get(key).and_then(|node| Some((node, node.integer()?)));
    if let (Some((_, min)), Some((node, max))) = (rows("min"), rows("max"))
        && min > max
    {
        let what = format!("a chunk cannot have at least {min} and at most {max} rows");
        faults.add(node.span.start, what, "set min to at most max");
    }
}

fn check_windows(bulk: &Node, faults: &mut Faults) {
    let windows = bulk.get("windows").map(Node::nodes).unwrap_or_default();
    for window in windows {
        let text = |key: &str| window.get(key).and_then(Node::text);
        if let Some(fault) = text("from").zip(text("to")).and_then(|(from, to)| window::fault(from, to)) {
            faults.add(
                window.span.start,
                fault.to_string(),
                "change one of the times; a whole day is from = \"00:00\", to = \"23:59:59\"",
            );
        }
    }
    let Some((node, zone)) = bulk.get("zone").and_then(|node| Some((node, node.text()?))) else { return };
    if windows.is_empty() {
        let remedy = "add windows = [{ from = \"22:00\", to = \"06:00\" }], or remove zone";
        faults.add(node.span.start, "zone has an effect only together with windows", remedy);
    }
    schedule::check_zone(node, zone, faults);
}

fn check_then(Entry { key: name, node: bulk, .. }: &Entry, entries: &[Entry], faults: &mut Faults) {
    let Some((node, next)) = bulk.get("then").and_then(|node| Some((node, node.text()?))) else { return };
    let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    if !names.contains(&next) {
        let remedy = match nearest(next, &names) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("bulk jobs of this file are {}", names.join(", ")),
        };
        faults.add(node.span.start, format!("there is no bulk job {next} in this file"), remedy);
    } else if leads_back(name, entries) {
        let what = format!("the end of {name} would start {name} again: it would never end");
        faults.add(node.span.start, what, "remove one `then` of the cycle");
    } else if entries.iter().any(|entry| entry.key == next && entry.node.get("columns").is_some()) {
        let what = format!("{next} reads its targets from a file, but `then` provides no file");
        faults.add(
            node.span.start,
            what,
            "give it a source and a key that read the rows written by the previous bulk job",
        );
    }
}

/// Returns whether the chain of `then` leads back to this bulk job.
fn leads_back(name: &str, entries: &[Entry]) -> bool {
    let next_of = |name: &str| {
        let entry = entries.iter().find(|entry| entry.key == name)?;
        entry.node.get("then")?.text()
    };
    let (mut at, mut seen) = (name, HashSet::new());
    while let Some(next) = next_of(at) {
        if next == name {
            return true;
        }
        if !seen.insert(next) {
            return false;
        }
        at = next;
    }
    false
}

fn check_schedule(
    Entry { key: name, node: bulk, .. }: &Entry,
    sql: &Sql,
    around: &Surroundings<'_>,
    faults: &mut Faults,
) {
    let Some(schedule) = bulk.get("schedule").filter(|schedule| schedule.is_table()) else { return };
    if bulk.get("columns").is_some() {
        let what = format!("{name} reads its targets from a file, but a schedule provides no file");
        let remedy = "remove the schedule, and let the program that writes the file run: milepost bulk start … --from FILE";
        faults.add(schedule.span.start, what, remedy);
    }
    schedule::check_spec(schedule, faults);
    schedule::check_misfire(schedule, faults);
    let others = around.schedules.map(Node::nodes).unwrap_or_default();
    if others.iter().any(|other| other.get("name").and_then(Node::text) == Some(name)) {
        let what = format!("the schedule of this bulk job and another schedule have the same name {name}");
        faults.add(schedule.span.start, what, "rename the other schedule");
    }
    let names = [
        ("source", sql.source.as_ref().map(Source::parameters)),
        ("apply", sql.apply.as_ref().map(Apply::parameters)),
    ];
    let payload = schedule.get("payload");
    schedule::check_payload(payload, faults);
    let given = |name: &str| {
        PROVIDED.contains(&name)
            || payload.is_some_and(|payload| match &payload.value {
                Value::Table(_) => payload.get(name).is_some(),
                // A value that is not a table was reported already.
                _ => true,
            })
    };
    for (part, names) in names {
        for parameter in names.unwrap_or_default().into_iter().filter(|name| !given(name)) {
            let what =
                format!("the schedule has no parameter {parameter:?}, which the {part} uses as :{parameter}");
            faults.add(
                payload.unwrap_or(schedule).span.start,
                what,
                format!("write payload = {{ {parameter} = … }}"),
            );
        }
    }
}
