//! `milepost config`: checks a configuration, creates one, and prints its schema.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use milepost_cli_support::output::{self, Outcome};
use serde_json::json;

use super::{Config, Faulty, schema};
use crate::selection::Selection;

/// The content that `milepost config init` writes.
pub(super) const EXAMPLE: &str = include_str!("../../data/milepost.toml");

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report all errors in a configuration, without running anything
    #[command(after_help = "Programs are looked up and environment variables are filled in as by\n\
        `milepost work`. SQL is checked in the dialect of the store: that of --store,\n\
        else of the file, else SQLite.\n\n\
        Exit status: 0 valid, 2 the configuration has errors.\n\n\
        Examples:\n  milepost config check\n  milepost config check --config /etc/milepost.toml --json")]
    Check {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write a commented example; an existing file is not changed
    #[command(
        after_help = "Examples:\n  milepost config init\n  milepost config init --config jobs/milepost.toml"
    )]
    Init,
    /// Print the JSON schema, for completion and checks in editors
    #[command(after_help = "Examples:\n  milepost config schema > milepost.schema.json\n\n\
        With this first line in milepost.toml, editors that know Taplo or Even Better\n\
        TOML use it:\n  \
        #:schema ./milepost.schema.json")]
    Schema,
}

pub(crate) fn run(command: ConfigCommand, selection: &Selection) -> Result<Outcome> {
    match command {
        ConfigCommand::Check { json: false } => {
            let config = selection.config()?;
            output::change(praise(selection.file(), &config))?;
            Ok(Outcome::Done)
        }
        ConfigCommand::Check { json: true } => check_as_json(selection),
        ConfigCommand::Init => init(selection.file()),
        ConfigCommand::Schema => {
            output::heard_or_not(output::json(&schema::of_sections())).map(|()| Outcome::Done)
        }
    }
}

fn praise(path: &Path, config: &Config) -> String {
    let kinds: Vec<&str> = config.kinds.keys().map(String::as_str).collect();
    let bulk = config.bulk_names().join(", ");
    let runs = match (kinds.as_slice(), bulk.as_str()) {
        ([], "") => ", and no kinds that `milepost work` could run".to_owned(),
        (kinds, "") => format!("; it runs {}", kinds.join(", ")),
        ([], bulk) => format!("; it runs the bulk jobs {bulk}"),
        (kinds, bulk) => format!("; it runs {} and the bulk jobs {bulk}", kinds.join(", ")),
    };
    format!("{} has no fault{runs}", path.display())
}

fn check_as_json(selection: &Selection) -> Result<Outcome> {
    let file = selection.file().display().to_string();
    let (kinds, bulk, faults) = match selection.config() {
        Ok(config) => (config.kinds.keys().cloned().collect(), config.bulk_names(), Vec::new()),
        Err(error) => (Vec::new(), Vec::new(), error.downcast::<Faulty>()?.faults),
    };
    let findings =
        json!({ "file": file, "ok": faults.is_empty(), "kinds": kinds, "bulk": bulk, "faults": faults });
    output::heard_or_not(output::json(&findings))?;
    Ok(if faults.is_empty() { Outcome::Done } else { Outcome::WrongUsage })
}

fn init(path: &Path) -> Result<Outcome> {
    // The file is likely to contain secrets.
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!(
                "{} exists already and was not changed; remove it, or give another file with --config",
                path.display()
            )
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    };
    file.write_all(EXAMPLE.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    output::note(format_args!(
        "wrote {}; try it with\n  milepost enqueue echo --payload '{{\"hello\": \"world\"}}'\n  milepost work",
        path.display()
    ));
    Ok(Outcome::Done)
}
