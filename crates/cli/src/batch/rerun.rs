//! `milepost batch rerun`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, ValueEnum};
use milepost_cli_support::output::{self, Outcome};
use milepost_core::batch::rerun::Chosen;
use milepost_core::port::Store;
use serde_json::json;

use super::find::WhichArgs;
use super::operate::{self, WhyArgs};
use super::plan;
use super::words;

const EXAMPLES: &str = "\
The conditions of rerun tasks are evaluated again. --task runs only these tasks
and leaves their successors unchanged; --downstream-of runs successors, too.
Tasks that wait for a failed task keep waiting, and continue automatically when
it succeeds after --failed. In a list or an inner batch, --failed runs only the
failed items and tasks; those that succeeded keep their results. With --task, a
list or inner batch restarts completely.

With --version latest, the batch moves to the latest version of its DAG, for
example after the definition was fixed. Tasks with the same keys keep their
state, removed tasks are canceled, and new ones run after their predecessors.
No job of the batch may be running, and its input must fit that version.

A preview is shown first. On a terminal, the command asks for confirmation; in
scripts, give --yes.

Examples:
  milepost batch rerun 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --failed
  milepost batch rerun settlement --key 2026-11-01 --failed --version latest
  milepost batch rerun settlement --key 2026-11-01 --downstream-of load --yes
  milepost batch rerun settlement --key 2026-11-01 --task report --task mail --reason 'new logo'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("what").required(true))]
pub(crate) struct RerunArgs {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    chosen: ChosenArgs,
    /// The version of the DAG to run
    #[arg(long, value_name = "VERSION", value_enum, default_value_t)]
    version: InVersion,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    why: WhyArgs,
    /// Print one JSON object; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

/// Which tasks are to run again.
#[derive(Debug, Args)]
struct ChosenArgs {
    /// A task by its key, or an item of a list by its index; may be given several times
    #[arg(long = "task", value_name = "TASK", group = "what")]
    tasks: Vec<String>,
    /// A task and its successors; may be given several times
    #[arg(long, value_name = "TASK", group = "what")]
    downstream_of: Vec<String>,
    /// The failed and aborted tasks and items, also in inner batches
    #[arg(long, group = "what")]
    failed: bool,
}

impl ChosenArgs {
    fn chosen(self) -> Chosen {
        match self {
            Self { failed: true, .. } => Chosen::Failed,
            Self { tasks, .. } if !tasks.is_empty() => Chosen::Tasks(tasks),
            Self { downstream_of, .. } => Chosen::Downstream(downstream_of),
        }
    }
}

/// The version in which tasks are run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InVersion {
    /// The version that the batch has
    #[default]
    Pinned,
    /// The latest version, to which the batch moves
    Latest,
}

pub(super) async fn run(args: RerunArgs, store: &dyn Store) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let chosen = args.chosen.chosen();
    let plan = match args.version {
        InVersion::Pinned => plan::pinned(&chosen, &subject, store).await?,
        InVersion::Latest => plan::latest(&chosen, &subject, store).await?,
    };
    if !args.json {
        output::note(plan::preview(&plan, &subject.row));
    }
    if !args.yes {
        match output::confirmed("Run them again?")? {
            Some(true) => {}
            Some(false) => bail!("nothing was changed"),
            None => bail!("nothing was changed: confirmation needs a terminal; give --yes to skip it"),
        }
    }
    let operated = operate::operate(&subject, plan.verb(), &args.why, Duration::ZERO, store).await?;
    let id = subject.row.id;
    if args.json {
        let mut told = json!({ "batch": id, "operated": operated, "tasks": plan.keys() });
        if let (Some(told), Some(change)) = (told.as_object_mut(), &plan.change) {
            told.insert("version".to_owned(), json!(change.to.number));
            told.insert("new".to_owned(), json!(change.new));
            told.insert("gone".to_owned(), json!(change.gone));
        }
        output::heard_or_not(output::json(&told))?;
    } else {
        let changed = words::tasks(operated.changed);
        let rerun = operated.generation.saturating_sub(1);
        let version =
            plan.change.map(|change| format!(", in version {}", change.to.number)).unwrap_or_default();
        output::change(format_args!("{id}  rerun {rerun}: {changed} reset{version}"))?;
    }
    Ok(Outcome::Done)
}
