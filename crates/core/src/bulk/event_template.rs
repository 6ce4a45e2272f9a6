//! Templates for events that are emitted for each target of a bulk job.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::key::Key;
use super::run::{BadTarget, Chunk, Target};
use crate::event::{Aggregate, NewEvent};
use crate::ident::{EventId, JobId};

/// A template for the events of a bulk job. Values that differ between targets come from columns of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTemplate {
    /// The type of the aggregate.
    pub aggregate_type: String,
    /// The column with the id of the aggregate: a text or a number.
    pub aggregate_id: String,
    /// The type of the event.
    pub event_type: String,
    /// The columns that form the payload; `None`: all columns that the source selects.
    pub payload: Option<Vec<String>>,
    /// Headers, each with the column of its value. A header whose column is NULL is omitted.
    pub headers: BTreeMap<String, String>,
}

impl EventTemplate {
    /// Returns the columns that it reads from a target.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let payload = self.payload.iter().flatten();
        std::iter::once(&self.aggregate_id).chain(payload).chain(self.headers.values()).map(String::as_str)
    }

    /// Creates the event for a target of this run. Repeated calls return the same event.
    fn event(&self, origin: JobId, target: &Target) -> Result<NewEvent, BadTarget> {
        let row: HashMap<String, &RawValue> = serde_json::from_str(&target.row).map_err(bad)?;
        let column =
            |name: &str| row.get(name).copied().ok_or_else(|| bad(format_args!("there is no column {name}")));
        let id = text_of(&self.aggregate_id, column(&self.aggregate_id)?)?;
        let id = id.ok_or_else(|| {
            bad(format_args!("{} is NULL, but the event needs an aggregate id", self.aggregate_id))
        })?;
        let payload = match &self.payload {
            None => RawValue::from_string(target.row.clone()).map_err(bad)?,
            Some(columns) => {
                let members = columns.iter().map(|name| Ok((name.as_str(), column(name)?)));
                let members: BTreeMap<&str, &RawValue> = members.collect::<Result<_, BadTarget>>()?;
                serde_json::value::to_raw_value(&members).map_err(bad)?
            }
        };
        let aggregate = Aggregate::new(self.aggregate_type.as_str(), id);
        let mut event = NewEvent::new(aggregate, self.event_type.as_str(), &payload).map_err(bad)?;
        for (header, name) in &self.headers {
            if let Some(value) = text_of(name, column(name)?)? {
                event = event.header(header, value);
            }
        }
        Ok(event.id(event_id(origin, &target.key)))
    }
}

impl Chunk<'_> {
    /// Creates an event for each target. The event id is derived from the run and the target's key.
    ///
    /// # Errors
    /// [`BadTarget`] when a target lacks what the template reads.
    pub fn child_events(&self, template: &EventTemplate) -> Result<Vec<NewEvent>, BadTarget> {
        self.targets.iter().map(|target| template.event(self.origin, target)).collect()
    }
}

/// Returns a column's value as text; `None` when it is NULL.
fn text_of(name: &str, value: &RawValue) -> Result<Option<String>, BadTarget> {
    match value.get().as_bytes() {
        b"null" => Ok(None),
        [b'"', ..] => serde_json::from_str(value.get()).map(Some).map_err(bad),
        [b'{' | b'[', ..] => Err(bad(format_args!("{name} is neither a text nor a number"))),
        _ => Ok(Some(value.get().to_owned())),
    }
}

fn bad(why: impl ToString) -> BadTarget {
    BadTarget { code: "target".to_owned(), message: why.to_string() }
}

/// Returns a UUIDv7 with the creation time of the run, so that ids of a run are adjacent in an index. The bits that are
/// normally random are a hash of the run and the target.
fn event_id(origin: JobId, key: &Key) -> EventId {
    let mut hash = Sha256::new();
    hash.update(origin.0.as_bytes());
    hash.update(serde_json::Value::from(key.0.clone()).to_string());
    let hash = hash.finalize();
    let mut bytes = *origin.0.as_bytes();
    bytes[6..].copy_from_slice(&hash[..10]);
    let id = uuid::Builder::from_bytes(bytes).with_variant(uuid::Variant::RFC4122);
    EventId(id.with_version(uuid::Version::SortRand).into_uuid())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ident::{Run, RunToken};

    fn template() -> EventTemplate {
        EventTemplate {
            aggregate_type: "customer".to_owned(),
            aggregate_id: "id".to_owned(),
            event_type: "customer.notified".to_owned(),
            payload: Some(vec!["text".to_owned(), "id".to_owned()]),
            headers: [("tenant".to_owned(), "tenant".to_owned())].into(),
        }
    }

    fn events(
        template: &EventTemplate,
        origin: JobId,
        rows: &[(i64, &str)],
    ) -> Result<Vec<NewEvent>, BadTarget> {
        let target = |(key, row): &(i64, &str)| Target { key: Key(vec![json!(key)]), row: (*row).to_owned() };
        let targets: Vec<Target> = rows.iter().map(target).collect();
        let run = Run { job: JobId::new(), token: RunToken(1) };
        Chunk { run, origin, payload: "{}", cursor: None, targets: &targets }.child_events(template)
    }

    #[test]
    fn an_event_has_the_columns_that_the_template_names() {
        let row = r#"{"id": 12345678901234567890123, "text": "hi", "tenant": "acme", "other": 1.0}"#;
        let event = events(&template(), JobId::new(), &[(1, row)]).unwrap().remove(0);
        assert_eq!(event.aggregate, Aggregate::new("customer", "12345678901234567890123"));
        assert_eq!(event.payload.get(), r#"{"id":12345678901234567890123,"text":"hi"}"#);
        assert_eq!(event.headers["tenant"], "acme");
        let whole = EventTemplate { payload: None, headers: BTreeMap::new(), ..template() };
        let event = events(&whole, JobId::new(), &[(1, row)]).unwrap().remove(0);
        assert_eq!((event.payload.get(), event.headers.len()), (row, 0));
        let null = row.replace("\"acme\"", "null");
        assert!(events(&template(), JobId::new(), &[(1, &null)]).unwrap()[0].headers.is_empty());
    }

    #[test]
    fn an_id_comes_of_the_run_and_the_key_and_of_nothing_else() {
        let row = r#"{"id": 1, "text": "hi", "tenant": null}"#;
        let other = r#"{"id": 1, "text": "ho", "tenant": null}"#;
        let origin = JobId::new();
        let ids = |origin, rows: &[(i64, &str)]| -> Vec<EventId> {
            events(&template(), origin, rows).unwrap().into_iter().map(|event| event.id).collect()
        };
        let of_two = ids(origin, &[(1, row), (2, row)]);
        assert_ne!(of_two[0], of_two[1]);
        assert_eq!(of_two[0], ids(origin, &[(1, other)])[0]);
        assert_ne!(of_two[0], ids(JobId::new(), &[(1, row)])[0]);
        assert_eq!(
            (of_two[0].0.get_version_num(), of_two[0].0.as_bytes()[..6].to_vec()),
            (7, origin.0.as_bytes()[..6].to_vec())
        );
    }

    #[test]
    fn a_target_without_what_the_template_reads_is_bad() {
        let why = |row: &str| events(&template(), JobId::new(), &[(1, row)]).unwrap_err().message;
        assert_eq!(
            why(r#"{"id": null, "text": "", "tenant": ""}"#),
            "id is NULL, but the event needs an aggregate id"
        );
        assert_eq!(why(r#"{"id": [1], "text": "", "tenant": ""}"#), "id is neither a text nor a number");
        assert_eq!(why(r#"{"id": 1, "tenant": ""}"#), "there is no column text");
        assert_eq!(why(r#"{"id": 1, "text": ""}"#), "there is no column tenant");
    }
}
