//! `milepost.toml`: what a worker without Rust runs, and how.
//!
//! A file is read as a whole and all its faults are told at once: TOML with the place of every value
//! ([`document`]), variables of the environment put in ([`environment`]), checked against the schema of the sections
//! ([`schema`]) and by each section's own rules, and only then read into the sections.

mod backoff;
mod batch;
mod bulk;
mod check;
pub(crate) mod command;
mod database;
pub(crate) mod document;
mod environment;
mod exec;
pub(crate) mod fault;
mod format;
mod http;
mod humane;
mod kind;
mod limit;
mod redis;
mod retention;
mod schedule;
mod schema;
mod serve;
mod subscription;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use milepost_core::bulk::sql::Dialect;
use milepost_core::secrets::Secrets;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::batch::BatchEntry;
pub(crate) use self::bulk::{BulkEntry, Doing, Places, ThrottleEntry};
pub(crate) use self::database::{DatabaseEntry, Databases};
use self::document::{Document, Node, Value};
use self::fault::Faults;
pub(crate) use self::fault::{Fault, Faulty};
pub(crate) use self::kind::{Executor, Kind};
pub(crate) use self::limit::LimitEntry;
pub(crate) use self::redis::Redis;
use self::retention::Retention;
pub(crate) use self::schedule::ScheduleEntry;
use self::serve::Serve;
pub(crate) use self::subscription::SubscriptionEntry;
use self::worker::Worker;
use crate::concealment;
use crate::store::StoreAddress;

// A new section is a field here and a module beside this one; rules of its own that a schema cannot tell go into
// `check_sections`.
/// What `milepost work` runs, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sections {
    /// Where the jobs are: `postgres://USER:PASSWORD@HOST/DATABASE`, with `?pooler=transaction&direct=HOST:PORT` behind a
    /// transaction pooler, or the path of a SQLite file, seen from the folder of this file. The default is `milepost.db` in the current folder.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-store"))]
    store: Option<String>,
    /// How the worker works.
    #[serde(default)]
    worker: Worker,
    /// A Redis that workers share, so that jobs start and stop sooner.
    #[serde(default)]
    redis: Option<Redis>,
    /// The kinds of jobs that the worker runs, each by its name.
    #[serde(default)]
    kinds: BTreeMap<String, Kind>,
    /// Jobs and batches that come back by themselves. A file without any leaves those of the store alone; `schedules = []` removes
    /// all that came from a configuration.
    #[serde(default)]
    schedules: Option<Vec<ScheduleEntry>>,
    /// How fast kinds may start, and how fast and how many at once groups. A file without any leaves those of the store
    /// alone; `limits = []` removes all that came from a configuration.
    #[serde(default)]
    limits: Option<Vec<LimitEntry>>,
    /// Bulk jobs, each by its name. A file without any leaves those of the store alone; `bulk = {}` removes all that
    /// came from a configuration.
    #[serde(default)]
    bulk: Option<BTreeMap<String, BulkEntry>>,
    /// DAGs of jobs, each by its name. Those that are stored and stand here no more stay.
    #[serde(default)]
    batch: BTreeMap<String, BatchEntry>,
    /// PostgreSQL databases beside the store, each by its name, for bulk jobs whose targets are there.
    #[serde(default)]
    database: Databases,
    /// Which events go where, each subscription by its name: for `milepost relay`.
    #[serde(default)]
    subscription: BTreeMap<String, SubscriptionEntry>,
    /// Where the server listens, and who may use it.
    #[serde(default)]
    serve: Serve,
    /// How long what is over is kept.
    #[serde(default)]
    retention: Retention,
}

/// The rules of the sections that a schema cannot tell.
fn check_sections(root: &Node, dialect: Dialect, folder: &Path, faults: &mut Faults) {
    worker::check(root.get("worker"), faults);
    redis::check(root.get("redis"), faults);
    kind::check(root.get("kinds"), faults);
    schedule::check(root.get("schedules"), faults);
    limit::check(root.get("limits"), faults);
    database::check(root.get("database"), faults);
    let (kinds, schedules, databases) = (root.get("kinds"), root.get("schedules"), root.get("database"));
    let around = bulk::Surroundings { kinds, schedules, databases, dialect };
    bulk::check(root.get("bulk"), &around, faults);
    batch::check(root.get("batch"), folder, faults);
    subscription::check(root.get("subscription"), folder, faults);
    serve::check(root.get("serve"), faults);
    retention::check(root.get("retention"), faults);
}

/// A file without faults.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where the jobs are, if the file says so.
    pub(crate) store: Option<StoreAddress>,
    pub(crate) worker: Worker,
    pub(crate) redis: Option<Redis>,
    pub(crate) kinds: BTreeMap<String, Kind>,
    /// Jobs that come back by themselves, if the file says anything about them.
    pub(crate) schedules: Option<Vec<ScheduleEntry>>,
    /// Limits, if the file says anything about them.
    pub(crate) limits: Option<Vec<LimitEntry>>,
    /// Bulk jobs, if the file says anything about them.
    pub(crate) bulk: Option<BTreeMap<String, BulkEntry>>,
    /// Where each bulk job stands.
    pub(crate) bulk_places: BTreeMap<String, Places>,
    /// DAGs of jobs.
    pub(crate) batch: BTreeMap<String, BatchEntry>,
    /// Databases beside the store.
    pub(crate) databases: Databases,
    /// Which events go where.
    pub(crate) subscriptions: BTreeMap<String, SubscriptionEntry>,
    pub(crate) serve: Serve,
    pub(crate) retention: Retention,
    /// The folder from which relative paths are seen.
    pub(crate) folder: PathBuf,
    /// What the environment filled in, and the passwords of databases and Redis.
    pub(crate) secrets: Secrets,
    /// Whether the text of the file contains one of these passwords.
    holds_password: bool,
}

impl Config {
    /// The names of its bulk jobs.
    pub(crate) fn bulk_names(&self) -> Vec<String> {
        self.bulk.iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// The store: the one that the command line names, else that of the file, else the default.
    pub(crate) fn address(&self, named: Option<&StoreAddress>) -> StoreAddress {
        named.or(self.store.as_ref()).cloned().unwrap_or_default()
    }
}

/// Reads a file, for the store that was named if there is one: SQL is read as that store's.
///
/// # Errors
/// [`Faulty`] with all that is wrong with it; another error when it cannot be read at all.
pub(crate) fn load(path: &Path, named: Option<&StoreAddress>) -> Result<Config> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let variable = |name: &str| std::env::var(name).ok();
    let config = parse(&text, folder, named, variable).map_err(|faults| Faulty::new(path, faults))?;
    if config.holds_password {
        concealment::warn_of_readers(path);
    }
    Ok(config)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the configuration {}; `milepost config init` writes an example", path.display())
    })
}

/// Reads the store of a file, and nothing else of it; `None` if the file does not name one.
///
/// # Errors
/// [`Faulty`] if the file is not TOML or its store is not usable; another error when it cannot be read at all.
pub(crate) fn store_of(path: &Path) -> Result<Option<StoreAddress>> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let variable = |name: &str| std::env::var(name).ok();
    Ok(parse_store(&text, folder, variable).map_err(|faults| Faulty::new(path, faults))?)
}

fn parse_store(
    text: &str,
    folder: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<StoreAddress>, Vec<Fault>> {
    let mut faults = Faults::default();
    let Some(Document { mut root, .. }) = Document::parse(text, &mut faults) else {
        return Err(faults.placed(text));
    };
    // A key that is there twice matters only to others.
    let mut faults = Faults::default();
    if let Value::Table(entries) = &mut root.value {
        entries.retain(|entry| entry.key == "store");
    }
    environment::fill_in(&mut root, text, variable, &mut faults);
    check::check(&root, &schema::of_sections(), folder, &mut faults);
    if !faults.is_empty() {
        return Err(faults.placed(text));
    }
    Ok(root.get("store").and_then(Node::text).and_then(|store| format::store(store, folder).ok()))
}

/// Reads the text of a file that lies in `folder`; `variable` answers what the environment holds.
fn parse(
    text: &str,
    folder: &Path,
    named: Option<&StoreAddress>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults::default();
    let document = Document::parse(text, &mut faults);
    let Some(mut document) = document else { return Err(faults.placed(text)) };
    let filled_in = RefCell::new(Vec::new());
    let variable = |name: &str| variable(name).inspect(|value| filled_in.borrow_mut().push(value.clone()));
    environment::fill_in(&mut document.root, text, variable, &mut faults);
    check::check(&document.root, &schema::of_sections(), folder, &mut faults);
    check_sections(&document.root, dialect(&document.root, folder, named), folder, &mut faults);
    faults.forget(&document.repeated);
    if !faults.is_empty() {
        return Err(faults.placed(text));
    }
    let bulk_places = bulk::places(document.root.get("bulk"), text);
    let sections: Sections = serde_json::from_value(document.root.into_json()).map_err(|error| {
        // The schema and the sections are made from the same types, so that this cannot be but for a defect.
        faults.add(0, error.to_string(), "this is a defect of milepost: please report it");
        faults.placed(text)
    })?;
    let store = sections.store.as_deref().and_then(|store| format::store(store, folder).ok());
    let Sections { worker, redis, kinds, schedules, limits, bulk, batch, retention, .. } = sections;
    let (databases, subscriptions, serve) = (sections.database, sections.subscription, sections.serve);
    let folder = folder.to_owned();
    let passwords: Vec<String> = store
        .iter()
        .chain(named)
        .flat_map(StoreAddress::passwords)
        .chain(redis.iter().flat_map(Redis::passwords))
        .chain(databases.values().flat_map(DatabaseEntry::passwords))
        .collect();
    let holds_password =
        passwords.iter().any(|password| !password.is_empty() && text.contains(password.as_str()));
    Ok(Config {
        store,
        worker,
        redis,
        kinds,
        schedules,
        limits,
        bulk,
        bulk_places,
        batch,
        databases,
        subscriptions,
        serve,
        retention,
        folder,
        secrets: Secrets::new(filled_in.into_inner().into_iter().chain(passwords)),
        holds_password,
    })
}

/// Whose SQL the file is written in: that of the store that was named, else of the file's, else of the default.
fn dialect(root: &Node, folder: &Path, named: Option<&StoreAddress>) -> Dialect {
    let of_file = root.get("store").and_then(Node::text).and_then(|store| format::store(store, folder).ok());
    named.cloned().or(of_file).unwrap_or_default().dialect()
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
