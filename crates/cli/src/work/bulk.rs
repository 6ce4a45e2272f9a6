//! The bulk jobs of a configuration. They run on a separate worker, so that they never occupy slots of other jobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use milepost::bulk::{Bulk, Definition, InvalidBulk};
use milepost::{Context, JobError, Outcome, StoreError, Worker, WorkerBuilder, WorkerOptions};
use milepost_cli_support::store::Database;
use milepost_core::port::Store;
use milepost_core::precedence::Scope;
use milepost_core::secrets::Secrets;
use milepost_core::worker::WorkerView;
use milepost_executors::exec::Exec;
use milepost_executors::http::Http;
use milepost_postgres::bulk::Database as Other;

use super::kinds::{REAP, Words};
use crate::bulk::assemble::{Effect, Site};
use crate::config::{BulkEntry, DatabaseEntry, Databases, Doing, Fault, Faulty, Places};

const CHECKED_REMEDY: &str = "see docs/BULK.md; `milepost bulk dry-run` tests the SQL";

/// The bulk jobs of a file.
pub(super) struct Bulks {
    /// The path of the file.
    pub(super) file: PathBuf,
    pub(super) entries: BTreeMap<String, BulkEntry>,
    pub(super) places: BTreeMap<String, Places>,
    /// The databases other than the store that they name.
    pub(super) databases: Databases,
    pub(super) secrets: Secrets,
}

/// Bulk jobs that the database has accepted, and the grace period that a worker needs to stop programs that apply chunks.
pub(super) struct Checked {
    bulks: Vec<Bulk>,
    secrets: Secrets,
    hand_back_grace: std::time::Duration,
}

impl Bulks {
    /// Builds the bulk jobs and has the database check each of them.
    ///
    /// # Errors
    /// [`Faulty`] with everything that the database rejects, each with its position in the file.
    pub(super) async fn check(self, database: &Database, folder: &Path) -> Result<Checked> {
        let definitions = definitions(&self.entries)?;
        let open = |(name, entry): (&String, &DatabaseEntry)| Ok((name.clone(), entry.open(name)?));
        let others: BTreeMap<String, Other> = self.databases.iter().map(open).collect::<Result<_>>()?;
        let around =
            Around { database, others: &others, definitions: &definitions, folder, secrets: &self.secrets };
        let mut checked = Checked {
            bulks: Vec::new(),
            secrets: self.secrets.clone(),
            hand_back_grace: std::time::Duration::ZERO,
        };
        let mut faults = Vec::new();
        for (name, entry) in self.entries {
            let bulk = checked.assemble(&around, &name, entry);
            let answer = match bulk {
                Ok(bulk) => {
                    let answer = bulk.check().await.map_err(anyhow::Error::from);
                    checked.bulks.push(bulk);
                    answer
                }
                Err(error) => Err(error),
            };
            if let Err(error) = answer {
                let context = || format!("the bulk job {name} could not be checked");
                let invalid = invalid(error).with_context(context)?;
                faults.push(fault(&name, &invalid, self.places.get(&name)));
            }
        }
        if !faults.is_empty() {
            faults.sort_by_key(|fault| (fault.line, fault.column));
            return Err(Faulty::new(&self.file, faults).into());
        }
        Ok(checked)
    }
}

/// Returns the fault of a bulk job; passes on all other errors.
fn invalid(error: anyhow::Error) -> Result<InvalidBulk> {
    match error.downcast::<StoreError>() {
        Ok(StoreError::Bulk(invalid)) => Ok(invalid),
        Ok(error) => Err(error.into()),
        Err(error) => Ok(error.downcast::<InvalidBulk>()?),
    }
}

fn fault(name: &str, invalid: &InvalidBulk, places: Option<&Places>) -> Fault {
    let place = places.map(|places| match invalid {
        InvalidBulk::Apply(_)
        | InvalidBulk::NoColumn { .. }
        | InvalidBulk::NotPrepared { part: "apply", .. } => places.effect,
        InvalidBulk::Source(_)
        | InvalidBulk::NotPrepared { .. }
        | InvalidBulk::NoKeyColumn { .. }
        | InvalidBulk::NoIndex { .. } => places.source,
        _ => places.name,
    });
    let (line, column) = place.unwrap_or((1, 1));
    let what = format!("the bulk job {name} cannot run: {invalid}");
    Fault { line, column, what, remedy: CHECKED_REMEDY.to_owned() }
}

/// Returns all definitions, by name.
fn definitions(entries: &BTreeMap<String, BulkEntry>) -> Result<BTreeMap<String, Definition>> {
    entries.iter().map(|(name, entry)| Ok((name.clone(), entry.definition(name)?))).collect()
}

/// The settings outside their own section that bulk jobs need.
struct Around<'a> {
    database: &'a Database,
    others: &'a BTreeMap<String, Other>,
    definitions: &'a BTreeMap<String, Definition>,
    folder: &'a Path,
    secrets: &'a Secrets,
}

impl Checked {
    fn assemble(&mut self, around: &Around<'_>, name: &str, entry: BulkEntry) -> Result<Bulk> {
        let definition = entry.definition(name)?;
        let dialect = entry.dialect(around.database.dialect());
        let ((source, key), windows) = (entry.targets(dialect)?, entry.windows()?);
        let other = entry.database().and_then(|name| around.others.get(name));
        let (database, source, key) = (around.database, source.as_str(), key.as_slice());
        let site = Site { database, other, definition: &definition, source, key };
        let throttles = site.throttles(entry.throttle());
        let throttles = throttles.with_context(|| format!("the throttle of the bulk job {name}"))?;
        let mut bulk = match entry.doing()? {
            Doing::Sql(sql) => Bulk::new(definition.clone(), site.work(Effect::Sql(sql))?),
            Doing::Enqueue(template) => Bulk::new(definition.clone(), site.work(Effect::Enqueue(*template))?),
            Doing::Emit(template) => Bulk::new(definition.clone(), site.work(Effect::Emit(template))?),
            Doing::Http(http) => {
                let http = Http::new(&http.config(around.secrets))
                    .with_context(|| format!("the bulk job {name}"))?;
                let http = Arc::new(http);
                Bulk::elsewhere(definition.clone(), site.work(Effect::Elsewhere)?, move |context| {
                    let http = http.clone();
                    async move { logged(&context, Words::Kept, http.run(&context)).await }
                })
            }
            Doing::Exec(exec) => {
                let config = exec.config(around.folder, around.secrets);
                self.hand_back_grace = self.hand_back_grace.max(config.kill_grace + REAP);
                let exec = Arc::new(Exec::new(config));
                Bulk::elsewhere(definition.clone(), site.work(Effect::Elsewhere)?, move |context| {
                    let exec = exec.clone();
                    async move { logged(&context, Words::Logged, exec.run(&context)).await }
                })
            }
        };
        if let Some(windows) = windows {
            bulk = bulk.windows(windows);
        }
        bulk = throttles.into_iter().fold(bulk, Bulk::throttle);
        Ok(match definition.then.as_ref().and_then(|next| around.definitions.get(next)) {
            Some(next) => bulk.then(next.clone()),
            None => bulk,
        })
    }

    /// Stores the definitions of the file, with the secrets in their statements hidden.
    /// Returns the names of the bulk jobs that were removed because the file no longer contains them.
    pub(super) async fn keep(&self, store: &dyn Store, scope: &Scope) -> Result<Vec<String>> {
        let stored = |bulk: &Bulk| {
            let mut definition = bulk.definition().clone();
            definition.statements = definition.statements.map(|its| its.hiding(&self.secrets));
            definition
        };
        let definitions: Vec<Definition> = self.bulks.iter().map(stored).collect();
        let synced = store.sync_bulks(&definitions, scope).await?;
        warn_of_removed(store, &synced.removed).await?;
        for name in synced.foreign {
            tracing::warn!(
                "an operator defined a bulk job {name}, which lists show; this worker uses the configuration"
            );
        }
        Ok(synced.removed)
    }

    /// Returns the names of all bulk jobs.
    pub(super) fn names(&self) -> Vec<String> {
        self.bulks.iter().map(|bulk| bulk.definition().name.clone()).collect()
    }

    /// Returns a worker that runs at most the given number of bulk jobs at a time; its other options are those of the worker for other
    /// jobs.
    pub(super) fn worker(
        self,
        store: Arc<dyn Store>,
        like: &WorkerOptions,
        concurrency: usize,
    ) -> WorkerBuilder {
        let options = WorkerOptions {
            name: format!("{} (bulk)", like.name),
            // The worker serves the queues of its bulk jobs.
            queues: Vec::new(),
            concurrency,
            hand_back_grace: like.hand_back_grace.max(self.hand_back_grace),
            ..like.clone()
        };
        let builder = Worker::builder(store).options(|all| *all = options);
        self.bulks.into_iter().fold(builder, WorkerBuilder::bulk)
    }
}

/// Applies a chunk and logs the result of the server or program.
async fn logged(
    context: &Context,
    words: Words,
    run: impl Future<Output = Result<Outcome, JobError>>,
) -> Result<Outcome, JobError> {
    let began = Instant::now();
    let answer = run.await;
    let (chunk, took_ms) = (context.idempotency_key(), began.elapsed().as_millis());
    let kind = context.job().kind.as_str();
    match &answer {
        Ok(Outcome::Stopped) => tracing::info!(chunk, kind, took_ms, "stopped"),
        Ok(_) => tracing::debug!(chunk, kind, took_ms, "a chunk is done"),
        Err(error) => {
            tracing::warn!(
                chunk,
                kind,
                took_ms,
                retryable = error.retryable,
                error = words.of(error),
                "a chunk failed: {}",
                error.code
            );
        }
    }
    answer
}

/// Logs which bulk jobs were removed, and which other workers still run them.
async fn warn_of_removed(store: &dyn Store, removed: &[String]) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let workers = store.workers().await?;
    for name in removed {
        let runs_it = |worker: &&WorkerView| worker.ended_at.is_none() && worker.kinds.contains(name);
        match workers.iter().find(runs_it) {
            Some(other) => tracing::warn!(
                "removed the bulk job {name}, which is not in this configuration, although worker {} runs it: nobody can start it. \
                 Workers with different configurations need `team`; see docs/guides/several-teams.md",
                other.name
            ),
            None => tracing::info!(
                "removed the bulk job {name}, which is no longer in the configuration; its runs stay"
            ),
        }
    }
    Ok(())
}
