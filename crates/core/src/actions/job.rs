//! Actions on jobs.

use std::time::Duration;

use humantime::format_duration;
use thiserror::Error;

use super::{Action, GRACE_DEFAULT, Input, actions};
use crate::error::StoreError;
use crate::ident::JobId;
use crate::port::{AdminStore, Coordination, Operated, Operation};
use crate::state::JobState;
use crate::transition::{IllegalTransition, Readiness, Verb, transition};

actions! {
    /// An operation on a job.
    #[cfg_attr(feature = "openapi", schema(as = JobOperation))]
    JobAction {
        Retry = "retry" {
            title: "Retry now",
            summary: "Run failed, retrying or aborted jobs again now",
            effect: "A failed job, or one that waits for its next attempt, runs as soon as a worker is free. An aborted job continues \
                     from its last checkpoint.",
            inputs: &[Input::Delay],
        }
        Resume = "resume" {
            title: "Resume",
            summary: "Resume aborted jobs from their last checkpoints",
            effect: "An aborted job runs as soon as a worker is free, from its last checkpoint.",
            inputs: &[Input::Delay],
        }
        Rerun = "rerun" {
            title: "Rerun",
            summary: "Run ended jobs again, from the start",
            effect: "A job that succeeded, was canceled or was skipped runs again from the start, with all its attempts and without its \
                     old checkpoint. Its history continues.",
            inputs: &[Input::Delay],
        }
        Release = "release" {
            title: "Release",
            summary: "Release blocked jobs, which then no longer wait for others",
            effect: "A blocked job runs when it is due and a worker is free. A job whose group has no free slot is not changed.",
        }
        Snooze = "snooze" {
            title: "Snooze",
            summary: "Delay waiting jobs",
            effect: "A waiting job is not claimed before the delay has passed.",
            inputs: &[Input::RequiredDelay],
        }
        Skip = "skip" {
            title: "Skip",
            summary: "Skip waiting jobs",
            effect: "A job that waits, for its time or for others, ends as skipped without running.",
            is_destructive: true,
        }
        Mark = "mark" {
            title: "Mark as done",
            summary: "Mark jobs that were done manually as succeeded",
            effect: "A job that waits or has failed ends as succeeded without running.",
            is_destructive: true,
        }
        Abort = "abort" {
            title: "Abort",
            summary: "Stop jobs so that they can be resumed",
            effect: "The job stops, and stays aborted until it is resumed or canceled.",
            is_destructive: true,
            inputs: &[Input::Grace],
        }
        Cancel = "cancel" {
            title: "Cancel",
            summary: "Cancel jobs permanently",
            effect: "The job ends permanently as canceled.",
            is_destructive: true,
            inputs: &[Input::Grace],
        }
    }
}

actions! {
    /// An operation that makes a job.
    NewJobAction {
        Create = "create" {
            title: "Create a job",
            summary: "Create a job",
            effect: "A worker that serves its kind and queue runs it when it is due.",
        }
    }
}

actions! {
    /// An operation that edits a job.
    JobEditAction {
        Edit = "edit" {
            title: "Edit",
            summary: "Change the payload or the options of jobs that wait or have failed",
            effect: "The job has the new payload and options from its next attempt on. Its state does not change.",
        }
    }
}

/// The values that an operator gives for an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// How long a running job may take to stop; [`GRACE_DEFAULT`] if it is not given.
    pub grace: Option<Duration>,
    /// How long the job is not claimed.
    pub delay: Option<Duration>,
    /// The reason, recorded in the history of the job.
    pub reason: Option<String>,
}

/// The error for an action that was not performed.
#[derive(Debug, Error)]
pub enum ActionError {
    /// The action needs a delay.
    #[error("{0} needs a delay, such as 10m")]
    NoDelay(JobAction),
    /// The store refused the action, or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl JobAction {
    /// Returns the verb of the action for a job in this state, if the state allows it.
    #[must_use]
    pub fn verb(self, state: JobState) -> Option<Verb> {
        let verb = match self.fixed_verb() {
            Some(verb) => verb,
            None => Verb::that_retries(state)?,
        };
        transition(Some(state), verb, Readiness::Ready).ok().map(|_| verb)
    }

    /// Returns the verb of the action; `None` if it depends on the state of the job.
    #[must_use]
    pub const fn fixed_verb(self) -> Option<Verb> {
        match self {
            Self::Retry => None,
            Self::Resume => Some(Verb::Resume),
            Self::Rerun => Some(Verb::Rerun),
            Self::Release => Some(Verb::Release),
            Self::Snooze => Some(Verb::Snooze),
            Self::Skip => Some(Verb::Skip),
            Self::Mark => Some(Verb::Mark),
            Self::Abort => Some(Verb::Abort),
            Self::Cancel => Some(Verb::Cancel),
        }
    }

    /// Returns a state in which the action is usual, for examples.
    #[must_use]
    pub const fn usual_state(self) -> JobState {
        match self {
            Self::Retry | Self::Mark => JobState::Failed,
            Self::Resume => JobState::Aborted,
            Self::Rerun => JobState::Canceled,
            Self::Release => JobState::Blocked,
            Self::Snooze | Self::Skip | Self::Cancel => JobState::Pending,
            Self::Abort => JobState::Running,
        }
    }

    /// Returns the actions to offer for a job in this state, each verb once.
    #[must_use]
    pub fn offered_in(state: JobState) -> Vec<Self> {
        let mut offered: Vec<Self> = Vec::new();
        for &action in Self::ALL {
            let verb = action.verb(state);
            if verb.is_some() && offered.iter().all(|other| other.verb(state) != verb) {
                offered.push(action);
            }
        }
        offered
    }

    /// Returns the error text for a job whose state does not allow the action.
    #[must_use]
    pub fn refusal(self, state: JobState) -> String {
        self.illegal(state).to_string()
    }

    const fn illegal(self, state: JobState) -> IllegalTransition {
        let verb = match self.fixed_verb() {
            Some(verb) => verb,
            None => Verb::RetryNow,
        };
        IllegalTransition { from: Some(state), verb }
    }

    /// Returns the operation of the store that performs the action with this verb.
    ///
    /// # Errors
    /// [`ActionError::NoDelay`] when the action needs a delay and has none.
    pub fn operation(self, verb: Verb, inputs: &Inputs) -> Result<Operation, ActionError> {
        if inputs.delay.is_none() && self.description().inputs.contains(&Input::RequiredDelay) {
            return Err(ActionError::NoDelay(self));
        }
        Ok(Operation {
            verb,
            grace: inputs.grace.unwrap_or(GRACE_DEFAULT),
            delay: inputs.delay.unwrap_or_default(),
            note: inputs.reason.clone(),
        })
    }

    /// Performs the action on one job.
    ///
    /// # Errors
    /// [`StoreError::Illegal`] when the state of the job does not allow the action; [`ActionError::NoDelay`]; errors of the store.
    pub async fn perform<S>(self, job: JobId, inputs: &Inputs, store: &S) -> Result<Operated, ActionError>
    where
        S: AdminStore + ?Sized,
    {
        let verb = match self.fixed_verb() {
            Some(verb) => verb,
            None => {
                let view = store.job(job).await?.ok_or(StoreError::NoSuchJob(job))?;
                match self.verb(view.row.state) {
                    Some(verb) => verb,
                    None => {
                        store.confirm_seen().await?;
                        return Err(StoreError::Illegal { job, illegal: self.illegal(view.row.state) }.into());
                    }
                }
            }
        };
        Ok(store.operate(job, &self.operation(verb, inputs)?).await?)
    }

    /// Announces to workers what the action changed: that a running job has to stop, or else that this job, or the next one of its group, may be
    /// ready. Returns whether the notification was sent.
    pub async fn announce(self, job: JobId, operated: Operated, helper: &dyn Coordination) -> bool {
        match (operated, self.verb(JobState::Running)) {
            (Operated::StopRequested, Some(verb)) => helper.flag_stop(job, verb).await,
            _ => helper.announce_ready().await,
        }
    }

    /// Describes the result for a user.
    #[must_use]
    pub fn result(self, operated: Operated, inputs: &Inputs) -> String {
        match (operated, self, inputs.delay) {
            (Operated::StopRequested, ..) => {
                let state = if self == Self::Abort { JobState::Aborted } else { JobState::Canceled };
                let grace = format_duration(inputs.grace.unwrap_or(GRACE_DEFAULT));
                format!("asked to stop; {state} after {grace} at the latest")
            }
            (Operated::Done(_), Self::Snooze, Some(delay)) => {
                format!("snoozed for {}", format_duration(delay))
            }
            (Operated::Done(state), ..) => state.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transition::states_allowing;

    fn offered(state: JobState) -> Vec<&'static str> {
        JobAction::offered_in(state).into_iter().map(JobAction::as_str).collect()
    }

    #[test]
    fn every_state_offers_the_actions_that_its_transitions_allow() {
        assert_eq!(offered(JobState::Blocked), ["release", "snooze", "skip", "mark", "abort", "cancel"]);
        assert_eq!(offered(JobState::Pending), ["snooze", "skip", "mark", "abort", "cancel"]);
        assert_eq!(offered(JobState::Running), ["abort", "cancel"]);
        assert_eq!(offered(JobState::RetryWait), ["retry", "snooze", "mark", "abort", "cancel"]);
        assert_eq!(offered(JobState::Failed), ["retry", "mark", "cancel"]);
        assert_eq!(offered(JobState::Aborted), ["retry", "cancel"]);
        for state in [JobState::Succeeded, JobState::Canceled, JobState::Skipped] {
            assert_eq!(offered(state), ["rerun"]);
        }
    }

    #[test]
    fn an_action_is_allowed_where_the_transition_function_allows_its_verb() {
        for &action in JobAction::ALL {
            assert!(action.verb(action.usual_state()).is_some(), "{action}");
            let Some(verb) = action.fixed_verb() else { continue };
            let allowed = JobState::ALL.iter().copied().filter(|&state| action.verb(state) == Some(verb));
            assert_eq!(allowed.collect::<Vec<_>>(), states_allowing(verb), "{action}");
        }
        assert_eq!(JobAction::Retry.verb(JobState::Failed), Some(Verb::RetryNow));
        assert_eq!(JobAction::Retry.verb(JobState::Aborted), Some(Verb::Resume));
        assert_eq!(JobAction::Retry.verb(JobState::Running), None);
    }

    #[test]
    fn every_action_is_described() {
        for &action in JobAction::ALL {
            let description = action.description();
            assert!(!description.title.is_empty() && !description.summary.ends_with('.'), "{action}");
            assert!(action.effect().ends_with('.') && !action.effect().contains("  "), "{action}");
            assert_eq!(action.as_str().parse(), Ok(action));
        }
        assert!(JobAction::Cancel.effect().contains("(10s by default)"), "{}", JobAction::Cancel.effect());
    }

    /// Run with `MILEPOST_UPDATE_DOCS=1` to update the file.
    #[test]
    fn the_operations_of_the_client_for_typescript_are_those_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/typescript/src/operations.ts");
        let names: Vec<String> = JobAction::ALL.iter().map(|action| format!("\"{action}\"")).collect();
        let expected = format!(
            "/** The operations on a job. Made from the code of the server; ARCHITECTURE.md says how. */\nexport type JobOperation = {};\n",
            names.join(" | ")
        );
        if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert!(written == expected, "operations.ts differs; run this test with MILEPOST_UPDATE_DOCS=1");
    }

    #[test]
    fn inputs_have_defaults_and_a_snooze_needs_its_delay() {
        let none = Inputs::default();
        let cancel = JobAction::Cancel.operation(Verb::Cancel, &none).unwrap();
        assert_eq!((cancel.grace, cancel.delay), (GRACE_DEFAULT, Duration::ZERO));
        let refused = JobAction::Snooze.operation(Verb::Snooze, &none).unwrap_err();
        assert_eq!(refused.to_string(), "snooze needs a delay, such as 10m");
        let delay = Some(Duration::from_secs(7_200));
        assert!(JobAction::Snooze.operation(Verb::Snooze, &Inputs { delay, ..none }).is_ok());
    }

    #[test]
    fn results_and_refusals_are_described() {
        let minute = Inputs { grace: Some(Duration::from_secs(60)), ..Inputs::default() };
        let stopping = JobAction::Abort.result(Operated::StopRequested, &minute);
        assert_eq!(stopping, "asked to stop; aborted after 1m at the latest");
        let later = Inputs { delay: Some(Duration::from_secs(7_200)), ..Inputs::default() };
        assert_eq!(JobAction::Snooze.result(Operated::Done(JobState::Pending), &later), "snoozed for 2h");
        assert_eq!(
            JobAction::Retry.refusal(JobState::Succeeded),
            "a job that is succeeded cannot retry; only jobs that are retry_wait, failed or aborted can"
        );
    }
}
