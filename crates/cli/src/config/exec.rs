//! `exec` of a kind: jobs as a program.

use std::collections::BTreeMap;
use std::path::Path;

use milepost_core::secrets::Secrets;
use milepost_executors::exec::{ExecConfig, KILL_GRACE_DEFAULT};
use schemars::JsonSchema;
use serde::Deserialize;

use super::format;
use super::humane::Humane;

/// The program reads the payload from its standard input; the last line it prints is the result. Exit status 0 is
/// success. After 64 and 65 (wrong usage, wrong data) the job has failed; after any other status it gets another attempt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    /// The program: a name that is looked up on `PATH`, or a path, seen from the folder of this file. There is no shell.
    #[schemars(extend("format" = "milepost-program"))]
    program: String,
    /// Its arguments, each passed on as it is.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "milepost-argument" }))]
    args: Vec<String>,
    /// Environment variables besides `PATH`, `HOME`, `LANG` and those that tell of the job.
    #[serde(default)]
    #[schemars(extend(
        "propertyNames" = { "format": "milepost-variable" },
        "additionalProperties" = { "type": "string", "format": "milepost-argument" }
    ))]
    env: BTreeMap<String, String>,
    /// Whether it gets all of the worker's environment but `MILEPOST_STORE`. The default is `false`.
    #[serde(default)]
    inherit_env: bool,
    /// The folder it starts in, seen from the folder of this file. The default is the folder of the worker.
    #[serde(default)]
    #[schemars(extend("format" = "milepost-folder"))]
    cwd: Option<String>,
    /// How long it gets to end after SIGTERM, before SIGKILL. The default is `5s`.
    #[serde(default)]
    kill_grace: Option<Humane>,
    /// The exit statuses that lead to another attempt, such as `[1, 75]`. The default is all but 0, 64 and 65.
    #[serde(default)]
    retry_exit_codes: Option<Vec<u8>>,
}

impl Exec {
    /// The program and its arguments.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str))
    }

    /// The settings; paths are seen from `folder`; `secrets`: what the whole file holds of them.
    pub(crate) fn config(self, folder: &Path, secrets: &Secrets) -> ExecConfig {
        ExecConfig {
            // Of a checked file the program is there; when it has gone since, each attempt says so.
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

// Arguments and environment hold secrets.
impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec").field("program", &self.program).finish_non_exhaustive()
    }
}
