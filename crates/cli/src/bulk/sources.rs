//! The sources of bulk jobs for a command: the configuration, if there is one, and the store.

use anyhow::{Result, bail};
use milepost::bulk::Definition;
use milepost_cli_support::store::{self, Database, Schema, StoreAddress};
use milepost_core::bulk::operation;
use milepost_core::port::Store;
use milepost_postgres::bulk::Database as Other;

use crate::config::{BulkEntry, Config};
use crate::nearest::nearest;
use crate::selection::Selection;

/// The configuration and the store address of a command.
pub(super) struct Scene {
    config: Option<Config>,
    pub(super) address: StoreAddress,
}

impl Scene {
    /// Reads the configuration if there is one. A faulty configuration is an error.
    pub(super) fn read(selection: &Selection) -> Result<Self> {
        Ok(Self { config: selection.config_if_any()?, address: selection.store()? })
    }

    /// Does the same for a command that needs only the store: a faulty configuration is ignored. A valid one provides the databases whose
    /// statements `abort --hard` interrupts.
    pub(super) fn glance(selection: &Selection) -> Result<Self> {
        Ok(Self { config: selection.config_if_any().unwrap_or_default(), address: selection.store()? })
    }

    /// Opens the store; its schema must match.
    pub(super) async fn open(&self) -> Result<Database> {
        store::open_database(&self.address, Schema::MustFit).await
    }

    /// Returns the bulk job's section of the configuration.
    pub(super) fn entry(&self, name: &str) -> Option<&BulkEntry> {
        self.config.as_ref()?.bulk.as_ref()?.get(name)
    }

    /// Returns the separate database with the targets of a configured bulk job, if it has one.
    pub(super) fn other(&self, name: &str) -> Result<Option<Other>> {
        let Some(config) = &self.config else { return Ok(None) };
        let database = self.entry(name).and_then(BulkEntry::database);
        let named = database.and_then(|database| Some((database, config.databases.get(database)?)));
        named.map(|(name, entry)| entry.open(name)).transpose()
    }

    /// Returns the bulk job's section of the configuration by value.
    pub(super) fn into_entry(self, name: &str) -> Option<BulkEntry> {
        self.config?.bulk?.remove(name)
    }

    /// Returns a bulk job by its name: from the configuration, else as registered in the store by a worker.
    pub(super) async fn definition(&self, name: &str, store: &dyn Store) -> Result<Definition> {
        if let Some(entry) = self.entry(name) {
            return entry.definition(name);
        }
        if let Some(definition) = store.bulk_definition(name).await? {
            return Ok(definition);
        }
        let stored = store.bulk_definitions().await?;
        self.refuse(name, stored.into_iter().map(|definition| definition.name))
    }

    /// Returns the error for an unknown bulk job, with the known names: those of the configuration and `others`.
    pub(super) fn refuse<T>(&self, name: &str, others: impl IntoIterator<Item = String>) -> Result<T> {
        let mut names: Vec<String> = self.config.iter().flat_map(Config::bulk_names).chain(others).collect();
        // Operations of operators on many jobs are a bulk job that nobody starts by name.
        names.retain(|name| name != operation::NAME);
        names.sort();
        names.dedup();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match (nearest(name, &names), names.as_slice()) {
            (Some(nearest), _) => bail!("there is no bulk job {name:?}; did you mean {nearest}?"),
            (None, []) => bail!(
                "there is no bulk job {name:?}, and no other bulk job: add a section [bulk.{name}] to \
                 milepost.toml (docs/BULK.md)"
            ),
            (None, names) => bail!("there is no bulk job {name:?}; there are {}", names.join(", ")),
        }
    }
}
