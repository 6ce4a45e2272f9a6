//! Users' statements in the form that PostgreSQL accepts: named placeholders become numbered parameters, each a text that is
//! cast to the type that the server inferred.

use std::collections::HashMap;

use milepost_core::bulk::sql::{Apply, Bounds, CHUNK, Placeholders, Source};

/// The value that a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    /// A member of the payload, or a parameter that Milepost provides.
    Parameter(String),
    /// A column of the cursor: the key up to which all targets are done.
    Cursor(usize),
    /// A column of the last key.
    Upper(usize),
    /// The maximum number of rows.
    Limit,
    /// The run's ID.
    Run,
    /// The next failures of another run, as JSON.
    Failed,
}

/// The types of parameters, as written in casts.
pub(super) type Types = HashMap<Slot, String>;

/// A statement and the values of its parameters, in order.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) slots: Vec<Slot>,
}

/// Numbers the parameters while a statement is written.
struct Numbers<'a> {
    /// `None`: the types are to be inferred.
    types: Option<&'a Types>,
    slots: Vec<Slot>,
}

impl Numbers<'_> {
    fn write(&mut self, slot: Slot) -> String {
        let at = self.slots.iter().position(|its| *its == slot).unwrap_or_else(|| {
            self.slots.push(slot.clone());
            self.slots.len() - 1
        });
        let number = at + 1;
        match self.types {
            None => format!("${number}"),
            Some(types) => {
                let (text, of) =
                    (format!("${number}::text"), types.get(&slot).map_or("text", String::as_str));
                match slot {
                    Slot::Cursor(_) | Slot::Upper(_) => key_value(&text, of),
                    _ => format!("({text}::{of})"),
                }
            }
        }
    }

    fn row(&mut self, columns: usize, slot: fn(usize) -> Slot) -> String {
        let columns: Vec<String> = (0..columns).map(|column| self.write(slot(column))).collect();
        row(&columns)
    }
}

impl Placeholders for Numbers<'_> {
    fn parameter(&mut self, name: &str) -> String {
        self.write(Slot::Parameter(name.to_owned()))
    }

    fn cursor(&mut self, column: usize) -> String {
        self.write(Slot::Cursor(column))
    }

    fn limit(&mut self) -> String {
        self.write(Slot::Limit)
    }
}

/// Types of keys, as written in casts, that have `min` and `max` aggregates in the order of the type.
const WITH_EXTREMES: [&str; 9] = [
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "double precision",
    "text",
    "date",
    "timestamp without time zone",
    "timestamp with time zone",
];

/// The targets that a chunk contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Those of the source, from the beginning or after the cursor.
    Source(Bounds),
    /// Those of the source that failed in another run; the cursor is the position among those failures.
    Failures,
}

/// Where the failures of another run are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failures {
    /// The store's table, in the same database.
    Stored,
    /// A parameter, because the targets are on another database.
    Given,
}

/// Writes statements around a source and an apply statement, if there is one.
pub(super) struct Author<'a> {
    pub(super) source: &'a Source,
    pub(super) apply: Option<&'a Apply>,
    /// `None`: the statements are only written to infer the types.
    pub(super) types: Option<&'a Types>,
    /// The types of the key columns.
    pub(super) key_types: &'a [String],
    /// Where failures are read from.
    pub(super) failures: Failures,
}

impl Author<'_> {
    /// Writes the source alone.
    pub(super) fn page(&self, bounds: Bounds) -> Statement {
        self.with(|numbers| self.source.query(bounds, numbers))
    }

    /// Writes a statement that applies a chunk and returns the number of its targets, the number of rows read from the
    /// source, the last key, and whether all keys are after the cursor.
    pub(super) fn apply(&self, from: From) -> Statement {
        self.with(|numbers| {
            let mut sql = self.chunk(from, "*", numbers);
            let mut read = String::new();
            if let Some(apply) = self.apply {
                let statement = apply.statement(numbers);
                // PostgreSQL executes a CTE with a SELECT only if it is referenced.
                let kept = if apply.is_query() { "as materialized" } else { "as" };
                sql.push_str(&format!(", applied {kept} ({statement})"));
                if apply.is_query() {
                    read.push_str(", (select count(*) from applied)");
                }
            }
            sql.push_str(&self.summary(from, &read, numbers));
            sql
        })
    }

    /// Writes a statement that returns the same as [`apply`](Self::apply) but applies nothing. It selects only the key
    /// columns, so that it works for a target whose other columns cannot be computed.
    pub(super) fn look(&self, from: From) -> Statement {
        self.with(|numbers| {
            let chunk = self.chunk(from, &self.names().join(", "), numbers);
            chunk + &self.summary(from, "", numbers)
        })
    }

    /// Writes a statement that returns the targets of a chunk as JSON objects, with their keys, and the position up to which
    /// they were read. For a failure whose target no longer exists, the object is null.
    pub(super) fn rows(&self, from: From) -> Statement {
        self.with(|numbers| {
            let chunk = self.chunk(from, "*", numbers);
            let (key, order) = (self.key_json(), self.names().join(", "));
            match from {
                From::Source(bounds) => format!(
                    "{chunk} select to_jsonb({CHUNK})::text as target, {key} as key, {key} as place, {} as moved \
                     from {CHUNK} order by {order}",
                    self.moved(bounds, numbers)
                ),
                From::Failures => format!(
                    "{chunk} select to_jsonb(source)::text as target, failed.key::text as key, \
                     jsonb_build_array(failed.pos::text)::text as place, true as moved \
                     from failed left join {CHUNK} as source on {} order by failed.pos",
                    self.same_key()
                ),
            }
        })
    }

    /// Writes a statement that returns the last key of the source.
    pub(super) fn last(&self) -> Statement {
        self.with(|numbers| {
            format!(
                "select {} from ({}) as source",
                self.key_json(),
                self.source.query(Bounds::Last, numbers)
            )
        })
    }

    /// Writes a statement that counts the targets up to the last key.
    pub(super) fn count(&self) -> Statement {
        self.with(|numbers| {
            let (all, within) = (self.source.query(Bounds::All, numbers), self.within(numbers));
            format!("select count(*) from ({all}) as source where {within}")
        })
    }

    /// Writes a statement that returns the planner's estimate of that number.
    pub(super) fn estimate(&self) -> Statement {
        let mut statement = self.page(Bounds::All);
        statement.sql.insert_str(0, "explain (format json) ");
        statement
    }

    fn with(&self, write: impl FnOnce(&mut Numbers<'_>) -> String) -> Statement {
        let mut numbers = Numbers { types: self.types, slots: Vec::new() };
        let sql = write(&mut numbers);
        Statement { sql, slots: numbers.slots }
    }

    fn chunk(&self, from: From, columns: &str, numbers: &mut Numbers<'_>) -> String {
        match from {
            From::Source(bounds) => {
                let (page, within) = (self.source.query(bounds, numbers), self.within(numbers));
                format!(
                    "with {CHUNK} as materialized (select {columns} from ({page}) as source where {within})"
                )
            }
            From::Failures => {
                let failures = match self.failures {
                    Failures::Stored => {
                        format!("milepost.bulk_failure where retried_by = {}", numbers.write(Slot::Run))
                    }
                    Failures::Given => format!(
                        "jsonb_to_recordset({}) as given(pos bigint, key jsonb) where true",
                        numbers.write(Slot::Failed)
                    ),
                };
                let after = numbers.write(Slot::Cursor(0));
                let (upper, limit) = (numbers.write(Slot::Upper(0)), numbers.write(Slot::Limit));
                let all = self.source.query(Bounds::All, numbers);
                let columns =
                    if columns == "*" { "source.*".to_owned() } else { self.of_source().join(", ") };
                format!(
                    "with failed as materialized (select pos, key from {failures} \
                     and pos > {after} and pos <= {upper} order by pos limit {limit}), \
                     {CHUNK} as materialized (select {columns} from failed join ({all}) as source on {})",
                    self.same_key()
                )
            }
        }
    }

    fn same_key(&self) -> String {
        let columns = self.names().into_iter().zip(self.key_types).enumerate();
        let same = columns.map(|(at, (name, of))| {
            format!("source.{name} = {}", key_value(&format!("(failed.key ->> {at})"), of))
        });
        same.collect::<Vec<_>>().join(" and ")
    }

    fn summary(&self, from: From, read: &str, numbers: &mut Numbers<'_>) -> String {
        match from {
            From::Failures => format!(
                " select (select count(*) from {CHUNK}) as targets, failures.read, failures.key, null as first, true as moved{read} \
                 from (select count(*) as read, \
                 case when count(*) > 0 then jsonb_build_array(max(pos)::text)::text end as key from failed) failures"
            ),
            From::Source(bounds) if self.has_extremes() => {
                let (key, moved) = (self.names().concat(), self.is_behind("counted.first", bounds, numbers));
                let json = |end: &str| key_json(&[format!("counted.{end}")]);
                format!(
                    " select counted.rows as targets, counted.rows as read, \
                     case when counted.rows > 0 then {} end as key, case when not ({moved}) then {} end as first, \
                     {moved} as moved{read} \
                     from (select count(*) as rows, min({key}) as first, max({key}) as last from {CHUNK}) counted",
                    json("last"),
                    json("first"),
                )
            }
            From::Source(bounds) => {
                let last: Vec<String> = self.names().iter().map(|name| format!("last.{name}")).collect();
                let (up, down) = (self.names().join(", "), self.names().join(" desc, "));
                // The keys are converted to JSON outside of the aggregate, so only once.
                format!(
                    " select counted.rows as targets, counted.rows as read, case when counted.rows > 0 then {} end as key, \
                     case when not counted.moved then (select {} from {CHUNK} order by {up} limit 1) end as first, \
                     counted.moved{read} \
                     from (select count(*) as rows, bool_and({}) as moved from {CHUNK}) counted \
                     left join lateral (select {up} from {CHUNK} order by {down} desc limit 1) last on true",
                    key_json(&last),
                    self.key_json(),
                    self.moved(bounds, numbers),
                )
            }
        }
    }

    /// Returns whether the server can compute the first and the last key of a chunk in one pass, with `min` and `max`: one
    /// key column, of one of [`WITH_EXTREMES`]. This makes a chunk 3 % faster.
    fn has_extremes(&self) -> bool {
        matches!(self.key_types, [of] if WITH_EXTREMES.contains(&of.as_str()))
    }

    /// Writes a condition: the target is after the cursor.
    fn moved(&self, bounds: Bounds, numbers: &mut Numbers<'_>) -> String {
        self.is_behind(&row(&self.names()), bounds, numbers)
    }

    /// Writes a condition: this key is after the cursor.
    fn is_behind(&self, key: &str, bounds: Bounds, numbers: &mut Numbers<'_>) -> String {
        match bounds {
            Bounds::Next | Bounds::After => {
                format!("{key} > {}", numbers.row(self.source.key().len(), Slot::Cursor))
            }
            _ => "true".to_owned(),
        }
    }

    fn within(&self, numbers: &mut Numbers<'_>) -> String {
        format!("{} <= {}", row(&self.names()), numbers.row(self.source.key().len(), Slot::Upper))
    }

    fn key_json(&self) -> String {
        key_json(&self.names())
    }

    /// Returns the key columns of the relation `source`.
    fn of_source(&self) -> Vec<String> {
        self.names().iter().map(|name| format!("source.{name}")).collect()
    }

    /// Returns the key columns as quoted identifiers.
    fn names(&self) -> Vec<String> {
        self.source.key().iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect()
    }
}

/// Casts a text to the type of a key. A UUID may have been a BLOB in SQLite before its store was migrated.
fn key_value(text: &str, of: &str) -> String {
    match of {
        "uuid" => format!("(ltrim({text}, '\\x')::uuid)"),
        _ => format!("({text}::{of})"),
    }
}

fn row(columns: &[String]) -> String {
    match columns {
        [column] => column.clone(),
        _ => format!("({})", columns.join(", ")),
    }
}

/// Writes a key as the text of a JSON array of texts.
fn key_json(columns: &[String]) -> String {
    let texts: Vec<String> = columns.iter().map(|column| format!("{column}::text")).collect();
    format!("jsonb_build_array({})::text", texts.join(", "))
}
