//! Where a command finds bulk jobs: in the configuration, if there is one, and in the store.

use anyhow::{Result, bail};
use milepost::bulk::Definition;
use milepost_core::port::Store;
use milepost_postgres::bulk::Database as Other;

use crate::config::{BulkEntry, Config};
use crate::nearest::nearest;
use crate::selection::Selection;
use crate::store::{self, Database, Schema, StoreAddress};

/// The configuration and the store of a command.
pub(super) struct Scene {
    config: Option<Config>,
    pub(super) address: StoreAddress,
}

impl Scene {
    /// Reads the configuration if there is one. Its faults end the command.
    pub(super) fn read(selection: &Selection) -> Result<Self> {
        Ok(Self { config: selection.config_if_any()?, address: selection.store()? })
    }

    /// The same for a command that needs only the store. It still knows the databases of a configuration without faults, which a
    /// hard abort interrupts.
    pub(super) fn glance(selection: &Selection) -> Result<Self> {
        Ok(Self { config: selection.config_if_any().unwrap_or_default(), address: selection.store()? })
    }

    /// The store, whose tables must fit.
    pub(super) async fn open(&self) -> Result<Database> {
        store::open_database(&self.address, Schema::MustFit).await
    }

    /// What the configuration says of a bulk job.
    pub(super) fn entry(&self, name: &str) -> Option<&BulkEntry> {
        self.config.as_ref()?.bulk.as_ref()?.get(name)
    }

    /// The database beside the store in which a bulk job of the configuration has its targets.
    pub(super) fn other(&self, name: &str) -> Result<Option<Other>> {
        let Some(config) = &self.config else { return Ok(None) };
        let database = self.entry(name).and_then(BulkEntry::database);
        let named = database.and_then(|database| Some((database, config.databases.get(database)?)));
        named.map(|(name, entry)| entry.open(name)).transpose()
    }

    /// What the configuration says of a bulk job, to be made use of.
    pub(super) fn into_entry(self, name: &str) -> Option<BulkEntry> {
        self.config?.bulk?.remove(name)
    }

    /// A bulk job by its name: as the configuration has it, else as a worker told the store.
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

    /// Says that there is no bulk job of this name, and which ones there are besides those of the configuration.
    pub(super) fn refuse<T>(&self, name: &str, others: impl IntoIterator<Item = String>) -> Result<T> {
        let mut names: Vec<String> = self.config.iter().flat_map(Config::bulk_names).chain(others).collect();
        names.sort();
        names.dedup();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match (nearest(name, &names), names.as_slice()) {
            (Some(nearest), _) => bail!("there is no bulk job {name:?}; did you mean {nearest}?"),
            (None, []) => bail!(
                "there is no bulk job {name:?}, nor any other: a section [bulk.{name}] of milepost.toml would make \
                 one (docs/BULK.md)"
            ),
            (None, names) => bail!("there is no bulk job {name:?}; there are {}", names.join(", ")),
        }
    }
}
