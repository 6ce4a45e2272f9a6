//! Conversion of a bulk job of a checked file to the runtime's definition.

use anyhow::{Context, Result, bail};
use milepost::bulk::{
    ColumnType, Columns, Definition, Effects, EventTemplate, InvalidColumns, Labels, Load, Sizing,
    Statements, Windows,
};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::bulk::sql::{Apply, Dialect, Source};
use milepost_core::job::{NewJob, Priority};
use milepost_core::schedule::Schedule;
use sha2::{Digest, Sha256};

use super::super::exec::Exec;
use super::super::http::Http;
use super::{BulkEntry, Children, ChunkSize, ThrottleEntry, window};

/// The default maximum number of rows that a server or a program receives in one chunk.
const ROWS_MAX_ELSEWHERE: u32 = 1000;

/// The operation that is applied to a chunk.
#[derive(Debug)]
pub(crate) enum Doing {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A job for each target, created from this template.
    Enqueue(Box<NewJob>),
    /// An event for each target.
    Emit(EventTemplate),
    Http(Http),
    Exec(Exec),
}

impl BulkEntry {
    /// Returns the query of its targets, and its key columns.
    pub(crate) fn targets(&self, dialect: Dialect) -> Result<(String, Vec<String>)> {
        if let Some(columns) = self.columns()? {
            return Ok((columns.source(dialect), Columns::key()));
        }
        match (&self.source, &self.key) {
            (Some(source), Some(key)) => Ok((source.clone(), key.clone())),
            // A checked file has both.
            _ => bail!("it has no source"),
        }
    }

    /// Returns the name of the separate database that contains its targets.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Returns the SQL dialect of the bulk job, given the store's dialect.
    pub(crate) fn dialect(&self, of_store: Dialect) -> Dialect {
        if self.database.is_some() { Dialect::Postgres } else { of_store }
    }

    /// Returns the columns of the file with which its runs are started.
    fn columns(&self) -> Result<Option<Columns>, InvalidColumns> {
        let columns = self
            .columns
            .as_ref()
            .map(|columns| Columns::new(columns.iter().map(|(name, holds)| (name.clone(), (*holds).into()))));
        columns.transpose()
    }

    /// Returns the operation on its chunks; a checked file has exactly one.
    pub(crate) fn doing(self) -> Result<Doing> {
        match self {
            Self { apply: Some(sql), .. } => Ok(Doing::Sql(sql)),
            Self { enqueue: Some(children), .. } => Ok(Doing::Enqueue(Box::new(children.template()?))),
            Self { emit: Some(emit), .. } => Ok(Doing::Emit(emit.template())),
            Self { http: Some(http), .. } => Ok(Doing::Http(http)),
            Self { exec: Some(exec), .. } => Ok(Doing::Exec(exec)),
            _ => bail!("it does nothing with its targets"),
        }
    }

    /// Returns the definition with this name.
    pub(crate) fn definition(&self, name: &str) -> Result<Definition> {
        let plain = Definition::new(name);
        let elsewhere = self.http.is_some() || self.exec.is_some();
        let twice = elsewhere || self.database.is_some();
        Ok(Definition {
            labels: Labels { r#type: self.r#type.clone(), category: self.category.clone() },
            group: self.group.clone().unwrap_or(plain.group),
            queue: self.queue.clone().unwrap_or(plain.queue),
            priority: self.priority.map_or(Ok(plain.priority), Priority::try_from)?,
            max_attempts: self.max_attempts.unwrap_or(plain.max_attempts),
            sizing: self.chunk.sizing(if elsewhere { ROWS_MAX_ELSEWHERE } else { u32::MAX }),
            load: Load { rows_per_s: self.rate, duty: self.duty.unwrap_or(plain.load.duty) },
            failures_max: self.error_budget.unwrap_or(plain.failures_max),
            then: self.then.clone(),
            effects: if twice { Effects::AtLeastOncePerChunk } else { Effects::ExactlyOnce },
            columns: self.columns()?,
            fingerprint: self.fingerprint(),
            // The rest is known when the SQL has been parsed.
            statements: Some(Statements { effect: self.effect_in_words(), ..Statements::default() }),
            place: plain.place,
            name: plain.name,
        })
    }

    /// Returns the times of day at which its chunks may start.
    pub(crate) fn windows(&self) -> Result<Option<Windows>> {
        window::windows(&self.windows, self.zone.as_deref())
    }

    /// Returns the conditions that pause its runs.
    pub(crate) const fn throttle(&self) -> &ThrottleEntry {
        &self.throttle
    }

    /// Returns the schedule that starts it.
    pub(crate) fn schedule(&self, name: &str) -> Result<Option<Schedule>> {
        let Some(schedule) = &self.schedule else { return Ok(None) };
        let schedule = self.definition(name).and_then(|definition| schedule.schedule(&definition));
        schedule.map(Some).with_context(|| format!("the schedule of the bulk job {name}"))
    }

    /// Returns whether a schedule starts it.
    pub(crate) const fn is_scheduled(&self) -> bool {
        self.schedule.is_some()
    }

    /// Describes an effect that is not SQL. Addresses and arguments may contain secrets, so only names are told.
    fn effect_in_words(&self) -> Option<String> {
        match self {
            Self { enqueue: Some(children), .. } => {
                Some(format!("creates a job of the kind {} for each target", children.kind))
            }
            Self { emit: Some(emit), .. } => {
                Some(format!("emits an event {} for each target", emit.event_type()))
            }
            Self { http: Some(http), .. } => Some(format!("sends each chunk to {}", http.server())),
            Self { exec: Some(exec), .. } => Some(format!("passes each chunk to {}", exec.program())),
            _ => None,
        }
    }

    /// Rejects the parameters if one that the SQL uses is missing.
    pub(crate) fn check_parameters(&self, given: &Parameters, dialect: Dialect) -> Result<()> {
        let (source, key) = self.targets(dialect)?;
        let source = Source::parse(&source, &key, dialect).map_err(InvalidBulk::Source)?;
        let apply = self.apply.as_ref().map(|apply| Apply::parse(apply, &key, dialect));
        let apply = apply.transpose().map_err(InvalidBulk::Apply)?;
        Ok(Statements::of(&source, apply.as_ref()).check_parameters(given)?)
    }

    /// Hashes the targets and the operation. Secrets are not included, so that renewing one does not change the fingerprint.
    fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut say = |part: &str| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        if let Some(columns) = &self.columns {
            // A text that is not a valid source.
            say("columns");
            for (name, holds) in columns {
                say(name);
                say(ColumnType::from(*holds).as_str());
            }
        }
        let key = self.key.as_deref().unwrap_or_default();
        say(self.source.as_deref().unwrap_or_default());
        say(&key.len().to_string());
        key.iter().for_each(|column| say(column));
        if let Some(database) = &self.database {
            ["database", database].into_iter().for_each(&mut say);
        }
        match self {
            Self { apply: Some(sql), .. } => ["apply", sql].into_iter().for_each(say),
            Self { enqueue: Some(children), .. } => {
                ["enqueue", &children.kind].into_iter().for_each(say);
            }
            Self { emit: Some(emit), .. } => ["emit"].into_iter().chain(emit.words()).for_each(say),
            Self { http: Some(http), .. } => ["http", http.url()].into_iter().for_each(say),
            Self { exec: Some(exec), .. } => ["exec"].into_iter().chain(exec.words()).for_each(say),
            _ => {}
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Children {
    fn template(self) -> Result<NewJob> {
        let mut job = NewJob::new(self.kind, &())?;
        job.queue = self.queue.unwrap_or(job.queue);
        job.priority = self.priority.map_or(Ok(job.priority), Priority::try_from)?;
        job.max_attempts = self.max_attempts.unwrap_or(job.max_attempts);
        job.group = self.group;
        job.timeout = self.timeout.map(|time| time.0);
        Ok(job)
    }
}

impl ChunkSize {
    /// Returns the chunk size. The default maximum number of rows is at most `rows_max`.
    fn sizing(&self, rows_max: u32) -> Sizing {
        let plain = Sizing::default();
        // If only one bound is given, the default of the other one is adjusted to it.
        let rows_min = self.min.unwrap_or(plain.rows_min.min(self.max.unwrap_or(u32::MAX)));
        let rows_max = self.max.unwrap_or(plain.rows_max.min(rows_max)).max(rows_min);
        Sizing { target: self.target.map_or(plain.target, |time| time.0), rows_min, rows_max }
    }
}
