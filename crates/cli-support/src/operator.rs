//! The operator, in whose name changes of this command are audited, and the options that commands of operators share.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use milepost_core::actions::{Action, GRACE_DEFAULT};
use milepost_core::audit::Actor;
use milepost_core::port::Store;

/// Returns the store for changes by the operator.
pub fn acting(store: &dyn Store) -> Result<Arc<dyn Store>> {
    acting_because(store, None)
}

/// Returns the store for changes by the operator with this reason.
pub fn acting_because(store: &dyn Store, why: Option<&str>) -> Result<Arc<dyn Store>> {
    Ok(store.acting_as(Actor::new(operator()?)?.because(why)?))
}

/// The width of help texts.
const COLUMNS: usize = 80;

/// The option for the reason, which every command has that changes something.
#[derive(Debug, Args)]
pub struct ReasonArgs {
    /// The reason, recorded in the audit and in the history
    #[arg(long, aliases = ["note", "why"], value_name = "TEXT")]
    pub reason: Option<String>,
}

impl ReasonArgs {
    /// Returns the store for changes by the operator with this reason.
    pub fn acting(&self, store: &dyn Store) -> Result<Arc<dyn Store>> {
        acting_because(store, self.reason.as_deref())
    }
}

/// The option for the grace time of actions that stop running jobs.
#[derive(Debug, Args)]
pub struct GraceArgs {
    /// How long running jobs may take to stop
    #[arg(long, value_name = "DURATION", default_value = GRACE.as_str(), value_parser = crate::parsers::duration)]
    pub grace: Duration,
}

static GRACE: LazyLock<String> = LazyLock::new(|| humantime::format_duration(GRACE_DEFAULT).to_string());

/// Returns the help text of an action: its effect, and then notes and examples.
pub fn help(action: impl Action, notes: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in action.effect().split_whitespace() {
        let width = word.chars().count();
        match column {
            0 => {}
            _ if column + 1 + width > COLUMNS => {
                text.push('\n');
                column = 0;
            }
            _ => {
                text.push(' ');
                column += 1;
            }
        }
        text.push_str(word);
        column += width;
    }
    format!("{text}\n\n{notes}")
}

/// Returns the user and the host that this command runs as.
#[cfg(unix)]
pub fn operator() -> Result<String> {
    use nix::unistd::{User, gethostname, getuid};

    let uid = getuid();
    let user = User::from_uid(uid).context("cannot determine the user")?;
    let user = user.map_or_else(|| uid.to_string(), |user| user.name);
    let host = gethostname().context("cannot determine the host name")?;
    Ok(format!("{user}@{}", host.to_string_lossy()))
}

/// Returns the user and the host that this command runs as.
#[cfg(not(unix))]
pub fn operator() -> Result<String> {
    let variable =
        |name| std::env::var(name).with_context(|| format!("cannot determine the user: no {name}"));
    Ok(format!("{}@{}", variable("USERNAME")?, variable("COMPUTERNAME")?))
}
