//! `[database.NAME]`: databases other than the store's that contain targets of bulk jobs.

use std::collections::BTreeMap;

use anyhow::Result;
use milepost_cli_support::passwords::passwords;
use milepost_postgres::bulk::Database;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{Entry, Node};
use super::fault::Faults;
use super::kind;

/// A PostgreSQL database other than the store, for bulk jobs with targets in it (docs/BULK.md).
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseEntry {
    /// Its address: `postgres://USER:PASSWORD@HOST/DATABASE`, of the server itself and not of a transaction pooler.
    #[schemars(extend("format" = "milepost-postgres"))]
    url: String,
}

impl DatabaseEntry {
    /// Returns the passwords in its URL.
    pub(super) fn passwords(&self) -> Vec<String> {
        passwords(&self.url)
    }

    /// Creates the database with its name. It does not connect yet.
    pub(crate) fn open(&self, name: &str) -> Result<Database> {
        Ok(Database::new(name, &self.url)?)
    }
}

// The URL contains a secret.
impl std::fmt::Debug for DatabaseEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatabaseEntry").finish_non_exhaustive()
    }
}

/// The databases of a file, by name.
pub(crate) type Databases = BTreeMap<String, DatabaseEntry>;

pub(super) fn check(databases: Option<&Node>, faults: &mut Faults) {
    for Entry { key: name, at, .. } in databases.map(Node::entries).unwrap_or_default() {
        if let Err(why) = kind::check_name("database", name) {
            faults.add(*at, why, "give it a name of 1 to 200 bytes without control characters");
        }
    }
}
