//! The configuration and the store that a command uses.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Result;
use milepost_cli_support::output;
use milepost_cli_support::store::StoreAddress;
use milepost_core::port::Store;
use milepost_core::retention::RetentionPolicy;

use crate::config::{self, Config};

/// The file that is read by default.
pub(crate) const FILE_DEFAULT: &str = "milepost.toml";

/// The store and the file named by the command line or the environment.
#[derive(Debug)]
pub(crate) struct Selection {
    store: Option<StoreAddress>,
    file: Option<PathBuf>,
    /// The store that [`store`](Self::store) returned.
    used: OnceLock<StoreAddress>,
}

impl Selection {
    /// Creates a selection from the store of `--store` or `MILEPOST_STORE`, and the file of `--config` or `MILEPOST_CONFIG`.
    pub(crate) const fn new(store: Option<StoreAddress>, file: Option<PathBuf>) -> Self {
        Self { store, file, used: OnceLock::new() }
    }

    /// Returns the store of `--store` or `MILEPOST_STORE`.
    pub(crate) const fn named_store(&self) -> Option<&StoreAddress> {
        self.store.as_ref()
    }

    /// Returns the path of the configuration, which may not exist.
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

    /// Returns the retention policy of the configuration, or the default.
    ///
    /// # Errors
    /// As [`config`](Self::config).
    pub(crate) fn configured_retention(&self) -> Result<RetentionPolicy> {
        Ok(self.config_if_any()?.map(|config| config.retention.policy()).unwrap_or_default())
    }

    /// Returns the retention policy that applies: that of the configuration with the periods that operators have stored.
    pub(crate) async fn retention(&self, store: &dyn Store) -> Result<RetentionPolicy> {
        Ok(store.retention(&self.configured_retention()?).await?)
    }

    /// Returns the store: the one on the command line, else that of the configuration, else `milepost.db` in the current folder. Prints a
    /// store that was not named on the command line, so that no user works on the wrong store by mistake. Faults elsewhere in the
    /// configuration are ignored: an operator must be able to stop a run in spite of them.
    ///
    /// # Errors
    /// [`config::Faulty`] if the store cannot be read from the configuration.
    pub(crate) fn store(&self) -> Result<StoreAddress> {
        let store = self.look_up()?;
        Ok(self.used.get_or_init(|| store).clone())
    }

    /// Returns the store that the command has used so far.
    pub(crate) fn used(&self) -> Option<&StoreAddress> {
        self.used.get()
    }

    fn look_up(&self) -> Result<StoreAddress> {
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
        // A link to a missing file, and a folder that cannot be searched, are faults of a configuration that somebody wanted.
        let is_missing = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        self.file.is_some() || !self.file().symlink_metadata().is_err_and(is_missing)
    }
}
