//! The configuration and the store that a command uses.

use std::path::{Path, PathBuf};

use anyhow::Result;
use milepost_core::retention::RetentionPolicy;

use crate::config::{self, Config};
use crate::output;
use crate::store::StoreAddress;

/// The file that is read if none is named.
const FILE_DEFAULT: &str = "milepost.toml";

/// What the command line and the environment name.
#[derive(Debug)]
pub(crate) struct Selection {
    store: Option<StoreAddress>,
    file: Option<PathBuf>,
}

impl Selection {
    /// The store of `--store` or `MILEPOST_STORE`, and the file of `--config` or `MILEPOST_CONFIG`.
    pub(crate) const fn new(store: Option<StoreAddress>, file: Option<PathBuf>) -> Self {
        Self { store, file }
    }

    /// The store of `--store` or `MILEPOST_STORE`.
    pub(crate) const fn named_store(&self) -> Option<&StoreAddress> {
        self.store.as_ref()
    }

    /// The path of the configuration, which may not exist.
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(FILE_DEFAULT))
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// [`config::Faulty`] with all its faults; another error if it cannot be read.
    pub(crate) fn config(&self) -> Result<Config> {
        config::load(self.file(), self.store.as_ref())
    }

    /// Reads the configuration; `None` if none is named and `milepost.toml` does not exist.
    ///
    /// # Errors
    /// As [`config`](Self::config).
    pub(crate) fn config_if_any(&self) -> Result<Option<Config>> {
        self.has_file().then(|| self.config()).transpose()
    }

    /// The retention of the configuration's workers, else the default.
    ///
    /// # Errors
    /// As [`config`](Self::config).
    pub(crate) fn retention(&self) -> Result<RetentionPolicy> {
        Ok(self.config_if_any()?.map(|config| config.retention.policy()).unwrap_or_default())
    }

    /// The store: the one that is named, else that of the configuration, else `milepost.db` in the current folder. Prints a store
    /// that is not named, so that nobody works on another one than they think. Faults elsewhere in the configuration do not matter:
    /// an operator must be able to stop a run in spite of them.
    ///
    /// # Errors
    /// [`config::Faulty`] if the store cannot be read from the configuration.
    pub(crate) fn store(&self) -> Result<StoreAddress> {
        if let Some(named) = &self.store {
            return Ok(named.clone());
        }
        let of_file = if self.has_file() { config::store_of(self.file())? } else { None };
        let source =
            of_file.as_ref().map_or_else(String::new, |_| format!(", from {}", self.file().display()));
        let store = of_file.unwrap_or_default();
        output::note(format_args!("store: {store}{source}"));
        Ok(store)
    }

    fn has_file(&self) -> bool {
        self.file.is_some() || self.file().exists()
    }
}
