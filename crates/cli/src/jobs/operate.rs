//! `milepost jobs cancel`, `retry` and similar: an action on the named jobs, or on all jobs that match a filter.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use milepost_cli_support::operator::{GraceArgs, ReasonArgs, help};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers;
use milepost_cli_support::store::{is_held, is_unreachable};
use milepost_core::actions::job::{ActionError, Inputs, JobAction};
use milepost_core::actions::select::select;
use milepost_core::actions::{Action, Input};
use milepost_core::error::StoreError;
use milepost_core::format::several;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Store};
use milepost_core::state::JobState;

use super::filter::FilterArgs;
use crate::redis::{RedisArgs, RedisNotifier};

/// The number of jobs that a preview lists.
const PREVIEWED: usize = 10;
const ID: &str = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";

/// A command for each action on jobs.
#[derive(Debug)]
pub(crate) struct OperateCommand {
    action: JobAction,
    args: OperateArgs,
    inputs: Inputs,
}

#[derive(Debug, Args)]
struct OperateArgs {
    /// The full ids of the jobs
    #[arg(value_name = "ID", value_parser = parsers::job_id, required_unless_present = "filter", conflicts_with = "filter")]
    ids: Vec<JobId>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Apply the action to all jobs that match; without it, they are only listed
    #[arg(long, requires = "filter")]
    yes: bool,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(flatten)]
    redis: RedisArgs,
}

#[derive(Debug, Args)]
struct DelayArgs {
    /// How long the jobs are not claimed, from now
    #[arg(long = "for", value_name = "DURATION", value_parser = parsers::positive_duration)]
    delay: Option<Duration>,
}

impl Subcommand for OperateCommand {
    fn augment_subcommands(command: Command) -> Command {
        JobAction::ALL.iter().fold(command, |command, &action| command.subcommand(describe(action)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name.parse::<JobAction>().is_ok()
    }
}

impl FromArgMatches for OperateCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(unknown)?;
        let action: JobAction = name.parse().map_err(|_| unknown())?;
        let args = OperateArgs::from_arg_matches(matches)?;
        let mut inputs = Inputs { reason: args.reason.reason.clone(), ..Inputs::default() };
        for input in action.description().inputs {
            match input {
                Input::Grace => inputs.grace = Some(GraceArgs::from_arg_matches(matches)?.grace),
                Input::Delay | Input::RequiredDelay => {
                    inputs.delay = DelayArgs::from_arg_matches(matches)?.delay;
                }
            }
        }
        Ok(Self { action, args, inputs })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the command of an action, with the options for its inputs.
fn describe(action: JobAction) -> Command {
    let description = action.description();
    let mut command = OperateArgs::augment_args(Command::new(action.as_str()));
    let mut required = String::new();
    for input in description.inputs {
        command = match input {
            Input::Grace => GraceArgs::augment_args(command),
            Input::Delay => DelayArgs::augment_args(command),
            Input::RequiredDelay => {
                " --for 10m".clone_into(&mut required);
                DelayArgs::augment_args(command).mut_arg("delay", |delay| delay.required(true))
            }
        };
    }
    let state = action.usual_state();
    // The structs of options have descriptions of their own, which clap would show.
    command.about(description.summary).after_help(help(
        action,
        &format!(
            "\
Instead of ids, options such as --state and --kind select jobs. The command then
lists the matching jobs and changes nothing; with --yes, it changes them.

Examples:
  milepost jobs {action} {ID}{required}
  milepost jobs {action} {ID}{required} --reason 'TEXT'
  milepost jobs {action} --state {state} --kind mail{required}
  milepost jobs {action} --state {state} --kind mail{required} --reason 'TEXT' --yes"
        ),
    ))
}

impl OperateCommand {
    pub(super) async fn run(self, store: &dyn Store) -> Result<Outcome> {
        let store = self.args.reason.acting(store)?;
        if !self.args.filter.is_given() {
            let jobs: Vec<_> = self.args.ids.iter().map(|&job| (job, None)).collect();
            return self.apply(&jobs, store.as_ref()).await;
        }
        let found = select(self.args.filter.filter(), store.as_ref()).await?;
        let (jobs, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, state)| self.action.verb(*state).is_some());
        if !others.is_empty() {
            if self.args.yes {
                // They were perhaps changed by commits that no standby has yet.
                store.confirm_seen().await?;
            }
            output::note(format_args!("not changed: {}", by_state(&others)));
        }
        if jobs.is_empty() {
            bail!("no job matches that {} can change", self.action);
        }
        if !self.args.yes {
            self.preview(&jobs)?;
            return Ok(Outcome::Done);
        }
        let jobs: Vec<_> = jobs.into_iter().map(|(job, state)| (job, Some(state))).collect();
        self.apply(&jobs, store.as_ref()).await
    }

    /// Lists the first of the jobs that the action would change.
    fn preview(&self, jobs: &[(JobId, JobState)]) -> Result<()> {
        for (job, state) in jobs.iter().take(PREVIEWED) {
            output::line(format_args!("{job}  {state}"))?;
        }
        let more = jobs.len().saturating_sub(PREVIEWED);
        if more > 0 {
            output::line(format_args!("and {more} more"))?;
        }
        let (jobs, action) = (several(jobs.len() as u64, "job matches", "jobs match"), self.action);
        output::note(format_args!("{jobs}; nothing was changed: give --yes to {action} them"));
        Ok(())
    }

    /// Performs the action on each of these jobs, if it is still in the state in which it was selected, and reports each result. Ends when the
    /// store cannot be reached.
    async fn apply(&self, jobs: &[(JobId, Option<JobState>)], store: &dyn Store) -> Result<Outcome> {
        let teller = self.args.redis.teller();
        let mut reports = Reports::default();
        for (at, &(job, selected_in)) in jobs.iter().enumerate() {
            let operated = match unchanged(job, selected_in, store).await {
                Ok(()) => operate(self.action, job, &self.inputs, &teller, store).await,
                Err(changed) => Err(changed),
            };
            let operated = operated.map_err(|error| {
                if is_held(&error) { error.context(format!("job {job} was not changed")) } else { error }
            });
            let left = jobs.len() - at - 1;
            if operated.as_ref().is_err_and(is_unreachable) && left > 0 {
                output::note(format_args!(
                    "not tried: {}",
                    several(left as u64, "further job", "further jobs")
                ));
                reports.add(job, operated.map(|_| String::new()));
                break;
            }
            reports.add(job, operated.map(|operated| self.action.result(operated, &self.inputs)));
        }
        reports.outcome()
    }
}

/// Checks that a job is still in the state in which it was selected, if it was selected by a filter.
async fn unchanged(job: JobId, selected_in: Option<JobState>, store: &dyn Store) -> Result<()> {
    let Some(selected_in) = selected_in else { return Ok(()) };
    let state = store.job(job).await?.ok_or(StoreError::NoSuchJob(job))?.row.state;
    if state != selected_in {
        bail!("job {job} was not changed: it was {selected_in} when it was selected, and is {state} now");
    }
    Ok(())
}

/// Counts jobs by state: `2 succeeded, 1 canceled`.
fn by_state(jobs: &[(JobId, JobState)]) -> String {
    let mut counts: BTreeMap<JobState, usize> = BTreeMap::new();
    for (_, state) in jobs {
        *counts.entry(*state).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    counts.join(", ")
}

/// Performs the action, then notifies workers of the result.
pub(crate) async fn operate(
    action: JobAction,
    job: JobId,
    inputs: &Inputs,
    teller: &RedisNotifier,
    store: &dyn Store,
) -> Result<Operated> {
    let operated = action.perform(job, inputs, store).await.map_err(|error| match error {
        ActionError::Store(error) => error.into(),
        error @ ActionError::NoDelay(_) => anyhow::Error::from(error),
    })?;
    teller.operated(action, job, operated).await;
    Ok(operated)
}

/// Reports the result for each job and records whether any failed. An output error does not prevent the remaining jobs from being
/// processed.
pub(crate) struct Reports {
    outcome: Outcome,
    told: Result<()>,
}

impl Default for Reports {
    fn default() -> Self {
        Self { outcome: Outcome::Done, told: Ok(()) }
    }
}

impl Reports {
    pub(crate) fn add(&mut self, id: JobId, words: Result<String>) {
        match words {
            Ok(words) if self.told.is_ok() => {
                self.told = output::line(format_args!("{id}  {words}")).map_err(Into::into);
            }
            Ok(_) => {}
            Err(error) => {
                output::error(&error);
                self.outcome = Outcome::SomeFailed;
            }
        }
    }

    pub(crate) fn outcome(self) -> Result<Outcome> {
        output::heard_or_not(self.told)?;
        Ok(self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_command_with_its_description_and_its_inputs() {
        for &action in JobAction::ALL {
            let command = describe(action);
            assert_eq!(
                command.get_about().map(ToString::to_string).as_deref(),
                Some(action.description().summary)
            );
            let has = |option| command.get_arguments().any(|arg| arg.get_long() == Some(option));
            let inputs = action.description().inputs;
            assert_eq!(has("grace"), inputs.contains(&Input::Grace), "{action}");
            assert_eq!(has("for"), inputs.iter().any(|input| *input != Input::Grace), "{action}");
            assert!(has("state") && has("yes") && has("reason"), "{action}");
        }
    }
}
