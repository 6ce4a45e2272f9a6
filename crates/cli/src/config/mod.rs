//! `milepost.toml`: the configuration of workers that run without Rust code.
//!
//! A file is read completely and all its faults are reported together: it is parsed as TOML with the position of every value
//! ([`document`]), environment variables are replaced ([`environment`]), and it is checked against the schema of the sections ([`schema`])
//! and by the rules of each section. Only then is it deserialized into the sections.

mod backoff;
mod batch;
mod bulk;
mod check;
pub(crate) mod command;
mod database;
pub(crate) mod document;
mod environment;
mod event_work;
mod exec;
pub(crate) mod fault;
mod format;
mod hide;
mod http;
mod humane;
mod kind;
mod limit;
mod notify;
mod oidc;
mod redis;
mod retention;
mod schedule;
mod schema;
mod serve;
mod subscription;
mod team;
mod worker;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use milepost_cli_support::process_secrets;
use milepost_cli_support::store::StoreAddress;
use milepost_core::bulk::sql::Dialect;
use milepost_core::precedence::Scope;
use milepost_core::secrets::Secrets;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::batch::BatchEntry;
pub(crate) use self::bulk::{BulkEntry, Doing, Places, ThrottleEntry};
pub(crate) use self::database::{DatabaseEntry, Databases};
use self::document::{Document, Node, Value};
use self::fault::Faults;
pub(crate) use self::fault::{Fault, Faulty};
use self::hide::Hide;
pub(crate) use self::kind::{Executor, Kind};
pub(crate) use self::limit::LimitEntry;
pub(crate) use self::notify::NotifyEntry;
pub(crate) use self::redis::Redis;
use self::retention::Retention;
pub(crate) use self::schedule::ScheduleEntry;
use self::serve::Serve;
pub(crate) use self::subscription::SubscriptionEntry;
use self::worker::Worker;
use crate::input;

// A new section is a field here and a module beside this one. Rules that a schema cannot express belong in `check_sections`.
/// The configuration of `milepost work`, `milepost relay` and `milepost serve`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sections {
    /// The store: `postgres://USER:PASSWORD@HOST/DATABASE`, with `?pooler=transaction&direct=HOST:PORT` behind a transaction pooler, or the
    /// path of a SQLite file, relative to the folder of this file. The default is `milepost.db` in the current folder.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-store"))]
    store: Option<String>,
    /// The team that this file belongs to, if several teams share the store: letters and digits. The names of its schedules, limits and bulk
    /// jobs are that of the team, or begin with it and a character that is neither a letter nor a digit: `billing.invoice`, `billing:*`. Those
    /// of other teams are not removed. A file without a team removes all that it does not contain.
    #[serde(default)]
    team: Option<String>,
    /// Settings of the worker.
    #[serde(default)]
    worker: Worker,
    /// A Redis shared by workers, which makes jobs start and stop sooner.
    #[serde(default)]
    redis: Option<Redis>,
    /// The kinds of jobs that the worker runs, each by its name.
    #[serde(default)]
    kinds: BTreeMap<String, Kind>,
    /// Recurring jobs and batches. If the file has no schedules, and no bulk job with one, those of the store are not changed; `schedules = []` removes
    /// all schedules that came from a configuration; with `team`, those of the team.
    #[serde(default)]
    schedules: Option<Vec<ScheduleEntry>>,
    /// Rates of kinds, and rates and concurrency of groups. If the file has no limits, those of the store are not
    /// changed; `limits = []` removes all limits that came from a configuration; with `team`, those of the team.
    #[serde(default)]
    limits: Option<Vec<LimitEntry>>,
    /// Bulk jobs, each by its name. If the file has no bulk jobs, those of the store are not changed; `bulk = {}` removes
    /// all bulk jobs that came from a configuration; with `team`, those of the team.
    #[serde(default)]
    bulk: Option<BTreeMap<String, BulkEntry>>,
    /// DAGs of jobs, each by its name. Stored DAGs that are removed from this file stay in the store.
    #[serde(default)]
    batch: BTreeMap<String, BatchEntry>,
    /// PostgreSQL databases other than the store, each by its name, for bulk jobs with targets in them.
    #[serde(default)]
    database: Databases,
    /// Subscriptions, each by its name, which `milepost relay` publishes.
    #[serde(default)]
    subscription: BTreeMap<String, SubscriptionEntry>,
    /// Targets that servers notify of alerts, each by its name.
    #[serde(default)]
    notify: BTreeMap<String, NotifyEntry>,
    /// Address and access control of the server.
    #[serde(default)]
    serve: Serve,
    /// Values that users of the server do not see.
    #[serde(default)]
    hide: Hide,
    /// Retention periods.
    #[serde(default)]
    retention: Retention,
}

/// Checks the rules of the sections that a schema cannot express.
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
    batch::check(root.get("batch"), root.get("bulk"), folder, faults);
    subscription::check(root.get("subscription"), folder, faults);
    notify::check(root.get("notify"), faults);
    serve::check(root.get("serve"), faults);
    hide::check(root.get("hide"), faults);
    retention::check(root.get("retention"), faults);
    team::check(root, faults);
}

/// The configuration of a file without faults.
#[derive(Debug)]
pub(crate) struct Config {
    /// The store, if the file names one.
    pub(crate) store: Option<StoreAddress>,
    /// The schedules, limits and bulk jobs of the store that it keeps.
    pub(crate) scope: Scope,
    pub(crate) worker: Worker,
    pub(crate) redis: Option<Redis>,
    pub(crate) kinds: BTreeMap<String, Kind>,
    /// Recurring jobs and batches, if the file has any schedule settings.
    pub(crate) schedules: Option<Vec<ScheduleEntry>>,
    /// Limits, if the file has a section of them.
    pub(crate) limits: Option<Vec<LimitEntry>>,
    /// Bulk jobs, if the file has a section of them.
    pub(crate) bulk: Option<BTreeMap<String, BulkEntry>>,
    /// The position of each bulk job in the file.
    pub(crate) bulk_places: BTreeMap<String, Places>,
    /// DAGs of jobs.
    pub(crate) batch: BTreeMap<String, BatchEntry>,
    /// Databases other than the store.
    pub(crate) databases: Databases,
    /// The subscriptions: events and their sinks.
    pub(crate) subscriptions: BTreeMap<String, SubscriptionEntry>,
    /// The targets of alerts.
    pub(crate) notify: BTreeMap<String, NotifyEntry>,
    pub(crate) serve: Serve,
    pub(crate) hide: Hide,
    pub(crate) retention: Retention,
    /// The folder that relative paths refer to.
    pub(crate) folder: PathBuf,
    /// The values filled in from the environment, and the passwords of databases and Redis.
    pub(crate) secrets: Secrets,
    /// Whether the text of the file contains one of these passwords.
    holds_password: bool,
}

impl Config {
    /// Returns the names of its bulk jobs.
    pub(crate) fn bulk_names(&self) -> Vec<String> {
        self.bulk.iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Returns the store: the one named on the command line, else that of the file, else the default.
    pub(crate) fn address(&self, named: Option<&StoreAddress>) -> StoreAddress {
        named.or(self.store.as_ref()).cloned().unwrap_or_default()
    }
}

/// Reads a file for the store named on the command line, if any: SQL is parsed in that store's dialect.
///
/// # Errors
/// [`Faulty`] with all faults of the file; another error if it cannot be read at all.
pub(crate) fn load(path: &Path, named: Option<&StoreAddress>) -> Result<Config> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let variable = |name: &str| std::env::var(name).ok();
    let config = parse(&text, folder, named, variable).map_err(|faults| Faulty::new(path, faults))?;
    if config.holds_password {
        process_secrets::warn_of_readers(path);
    }
    Ok(config)
}

fn read(path: &Path) -> Result<String> {
    input::read_text(path, input::DOCUMENT_BYTES_MAX).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::NotFound => "; `milepost config init` writes an example",
            ErrorKind::InvalidData => "; save it as UTF-8",
            _ => "",
        };
        anyhow::Error::new(error).context(format!("cannot read the configuration {}{advice}", path.display()))
    })
}

/// Reads only the store setting of a file; `None` if the file does not name a store.
///
/// # Errors
/// [`Faulty`] if the file is not TOML, if its store is not usable or named twice, or if it names no store but has an unknown key, which may be
/// meant as one; another error if it cannot be read at all.
pub(crate) fn store_of(path: &Path) -> Result<Option<StoreAddress>> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let variable = |name: &str| std::env::var(name).ok();
    Ok(parse_store(&text, folder, variable).map_err(|faults| Faulty::new(path, faults))?)
}

pub(crate) fn parse_store(
    text: &str,
    folder: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<StoreAddress>, Vec<Fault>> {
    let mut faults = Faults::default();
    let Some(Document { mut root, .. }) = Document::parse(text, &mut faults) else {
        return Err(faults.placed(text));
    };
    // Other repeated keys do not affect the store setting.
    faults.keep_key(text, "store");
    if root.get("store").is_none() {
        let mut all = Faults::default();
        check::check(&root, &schema::of_sections(), folder, &mut all);
        faults.add_unknown_keys_of(all);
    }
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

/// Parses the text of a file in `folder`; `variable` returns the value of an environment variable.
pub(crate) fn parse(
    text: &str,
    folder: &Path,
    named: Option<&StoreAddress>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults::default();
    let document = Document::parse(text, &mut faults);
    let Some(mut document) = document else { return Err(faults.placed(text)) };
    let filled_in = environment::fill_in(&mut document.root, text, variable, &mut faults);
    check::check(&document.root, &schema::of_sections(), folder, &mut faults);
    check_sections(&document.root, dialect(&document.root, folder, named), folder, &mut faults);
    document.root.check_nul(&mut faults);
    faults.forget(&document.repeated);
    if !faults.is_empty() {
        return Err(faults.placed(text));
    }
    let bulk_places = bulk::places(document.root.get("bulk"), text);
    let sections: Sections = serde_json::from_value(document.root.into_json()).map_err(|error| {
        // The schema and the sections are generated from the same types, so this error means a defect.
        faults.add(0, error.to_string(), "this is a defect of milepost: please report it");
        faults.placed(text)
    })?;
    let store = sections.store.as_deref().and_then(|store| format::store(store, folder).ok());
    let Sections { worker, redis, kinds, schedules, limits, bulk, batch, retention, .. } = sections;
    let (databases, subscriptions, serve) = (sections.database, sections.subscription, sections.serve);
    let hide = sections.hide;
    let notify = sections.notify;
    let folder = folder.to_owned();
    let passwords: Vec<String> = store
        .iter()
        .chain(named)
        .flat_map(StoreAddress::passwords)
        .chain(redis.iter().flat_map(Redis::passwords))
        .chain(databases.values().flat_map(DatabaseEntry::passwords))
        .chain(notify.values().flat_map(NotifyEntry::passwords))
        .chain(serve.passwords())
        .collect();
    let holds_password =
        passwords.iter().any(|password| !password.is_empty() && text.contains(password.as_str()));
    Ok(Config {
        store,
        scope: sections.team.map_or(Scope::All, Scope::Team),
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
        notify,
        serve,
        hide,
        retention,
        folder,
        secrets: Secrets::new(filled_in.into_iter().chain(passwords)),
        holds_password,
    })
}

/// Returns the SQL dialect of the file: that of the store on the command line, else of the file's store, else of the default store.
fn dialect(root: &Node, folder: &Path, named: Option<&StoreAddress>) -> Dialect {
    let of_file = root.get("store").and_then(Node::text).and_then(|store| format::store(store, folder).ok());
    named.cloned().or(of_file).unwrap_or_default().dialect()
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
