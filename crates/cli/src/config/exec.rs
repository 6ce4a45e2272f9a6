//! `exec` of a kind: jobs run as a program.

use std::collections::BTreeMap;
use std::path::Path;

use milepost_core::secrets::Secrets;
use milepost_executors::exec::{ExecConfig, KILL_GRACE_DEFAULT};
use schemars::JsonSchema;
use serde::Deserialize;

use super::format;
use super::humane::Humane;

/// The program reads the payload from its standard input; the last line that it prints is the result. Exit status 0 is
/// success. After 64 and 65 (wrong usage, wrong data) the job has failed; after any other status it is retried.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    /// The program: a name that is looked up on `PATH`, or a path relative to the folder of this file. No shell is used.
    #[schemars(extend("format" = "milepost-program"))]
    program: String,
    /// Its arguments, passed unchanged.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "milepost-argument" }))]
    args: Vec<String>,
    /// Environment variables in addition to `PATH`, `HOME`, `LANG` and those that describe the job.
    #[serde(default)]
    #[schemars(extend(
        "propertyNames" = { "format": "milepost-variable" },
        "additionalProperties" = { "type": "string", "format": "milepost-argument" }
    ))]
    env: BTreeMap<String, String>,
    /// Whether it inherits the worker's environment, except for `MILEPOST_STORE` and `MILEPOST_REDIS`. The default is `false`.
    #[serde(default)]
    inherit_env: bool,
    /// Its working directory, relative to the folder of this file. The default is the worker's working directory.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-folder"))]
    cwd: Option<String>,
    /// The time between SIGTERM and SIGKILL. The default is `5s`.
    #[serde(default)]
    kill_grace: Option<Humane>,
    /// The exit statuses that lead to a retry, such as `[1, 75]`. The default is all except 0, 64 and 65.
    #[serde(default)]
    retry_exit_codes: Option<Vec<u8>>,
}

impl Exec {
    /// Returns the program.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Returns the program and its arguments.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str))
    }

    /// Returns the executor's settings. Paths are relative to `folder`; `secrets` are all secrets of the file.
    pub(crate) fn config(self, folder: &Path, secrets: &Secrets) -> ExecConfig {
        ExecConfig {
            // The check of the file found the program. If it was removed since, each attempt reports that.
            program: format::program(&self.program, folder).unwrap_or_else(|| self.program.into()),
            args: self.args,
            env: self.env,
            inherit_env: self.inherit_env,
            cwd: self.cwd.map(|cwd| folder.join(cwd)),
            kill_grace: self.kill_grace.map_or(KILL_GRACE_DEFAULT, |time| time.0),
            retry_exit_codes: self.retry_exit_codes,
            secrets: secrets.clone(),
        }
    }
}

// Arguments and environment may contain secrets.
impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec").field("program", &self.program).finish_non_exhaustive()
    }
}
