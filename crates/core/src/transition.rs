//! The total state transition function: (state, verb) → next state, or a typed error.
//!
//! Every state change of a job follows this function. The stores' SQL agrees with it for every pair, and the
//! conformance suite checks all pairs against both.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::named::named_enum;
use crate::state::JobState;

named_enum! {
    /// An operation on a job, or a change of its state. The history records each change under this name.
    Verb {
        /// The job is created.
        Create = "create",
        /// Its last predecessor ended, or its group has a slot for it.
        Release = "release",
        /// A worker claims it, which raises the run token.
        Claim = "claim",
        /// The handler succeeded.
        Succeed = "succeed",
        /// The attempt failed (or its lease was lost) and attempts are left.
        Retry = "retry",
        /// The attempt failed permanently, or was the last one.
        Fail = "fail",
        /// The handler returned the job without using an attempt: snooze, throttle, shutdown.
        Yield = "yield",
        /// A caller or an operator cancels it.
        Cancel = "cancel",
        /// The job is skipped: it does not run.
        Skip = "skip",
        /// An operator marks it as succeeded.
        Mark = "mark",
        /// An operator stops it; it can be resumed later.
        Abort = "abort",
        /// An operator makes a failed or waiting job run now.
        RetryNow = "retry_now",
        /// An operator makes an aborted job continue.
        Resume = "resume",
        /// An operator makes an ended job run again.
        Rerun = "rerun",
        /// An operator changes the time before which a waiting job may not be claimed; its state does not change.
        Snooze = "snooze",
        /// An operator, or another enqueue with its key, changes the payload or options of a job that does not run; its state does not change.
        Edit = "edit",
    }
}

impl Verb {
    /// Returns the name of the audited action with which an operator uses this verb; `None` for the verbs of workers and of the store.
    #[must_use]
    pub const fn audit_name(self) -> Option<&'static str> {
        Some(match self {
            Self::Release => "job.release",
            Self::Cancel => "job.cancel",
            Self::Skip => "job.skip",
            Self::Mark => "job.mark",
            Self::Abort => "job.abort",
            Self::RetryNow => "job.retry",
            Self::Resume => "job.resume",
            Self::Rerun => "job.rerun",
            Self::Snooze => "job.snooze",
            Self::Edit => "job.edit",
            Self::Create | Self::Claim | Self::Succeed | Self::Retry | Self::Fail | Self::Yield => {
                return None;
            }
        })
    }

    /// Returns the verb with which an operator retries a job in this state, if that is possible.
    #[must_use]
    pub const fn that_retries(state: JobState) -> Option<Self> {
        match state {
            JobState::Failed | JobState::RetryWait => Some(Self::RetryNow),
            JobState::Aborted => Some(Self::Resume),
            _ => None,
        }
    }

    /// Returns the verb that stops a running job when a stop was already requested. A requested cancel is final, whatever is
    /// requested or reported later; an abort is not.
    #[must_use]
    pub const fn that_stops(requested: Option<Self>, verb: Self) -> Self {
        match (requested, verb) {
            (Some(Self::Cancel), Self::Abort) => Self::Cancel,
            _ => verb,
        }
    }

    /// Returns whether a run that ends with this verb does not use up an attempt: it was released, or aborted by an operator without
    /// having failed.
    #[must_use]
    pub const fn spares_attempt(self, has_failed: bool) -> bool {
        matches!(self, Self::Yield) || matches!(self, Self::Abort) && !has_failed
    }
}

/// Whether a job can become claimable: no open predecessor, and a slot in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The job may be claimed when it is due.
    Ready,
    /// The job must wait for predecessors or for its group.
    Held,
}

/// A verb that is not allowed in the job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub struct IllegalTransition {
    /// The job's state; `None` when the job does not exist yet.
    pub from: Option<JobState>,
    /// The attempted verb.
    pub verb: Verb,
}

impl fmt::Display for IllegalTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.verb == Verb::RetryNow { "retry" } else { self.verb.as_str() };
        let Some(state) = self.from else { return write!(f, "a job that does not exist cannot {verb}") };
        write!(f, "a job that is {state} cannot {verb}")?;
        let allowed = self.allowed();
        match allowed.split_last() {
            // The state allows the verb, but something else does not.
            _ if allowed.contains(&state.as_str()) && self.verb == Verb::Release => {
                write!(f, " now: it waits for a slot of its group or for other jobs")
            }
            _ if allowed.contains(&state.as_str()) => Ok(()),
            None => Ok(()),
            Some((last, [])) => write!(f, "; only jobs that are {last} can"),
            Some((last, others)) => write!(f, "; only jobs that are {} or {last} can", others.join(", ")),
        }
    }
}

impl IllegalTransition {
    /// Returns the names of the states in which the verb is allowed; for a retry, those in which an operator can retry a job.
    fn allowed(self) -> Vec<&'static str> {
        let allows = |state: JobState| match self.verb {
            Verb::RetryNow => Verb::that_retries(state).is_some(),
            verb => transition(Some(state), verb, Readiness::Ready).is_ok(),
        };
        JobState::ALL.iter().filter(|state| allows(**state)).map(|state| state.as_str()).collect()
    }
}

/// Returns the state after `verb` is applied to a job in state `from` (`None`: the job does not exist yet).
///
/// `readiness` matters only when a job that holds no slot of its group is about to wait for a worker: at its creation,
/// and when an operator retries, resumes or reruns it.
///
/// # Errors
/// [`IllegalTransition`] for every pair that is not allowed.
pub const fn transition(
    from: Option<JobState>,
    verb: Verb,
    readiness: Readiness,
) -> Result<JobState, IllegalTransition> {
    use JobState::{Aborted, Blocked, Canceled, Failed, Pending, RetryWait, Running, Skipped, Succeeded};

    let entry = match readiness {
        Readiness::Ready => Pending,
        Readiness::Held => Blocked,
    };
    let Some(state) = from else {
        return match verb {
            Verb::Create => Ok(entry),
            _ => Err(IllegalTransition { from, verb }),
        };
    };
    match (state, verb) {
        (Blocked, Verb::Release) => Ok(Pending),
        (Pending | RetryWait, Verb::Claim) => Ok(Running),
        (Running, Verb::Succeed) => Ok(Succeeded),
        (Running, Verb::Retry) => Ok(RetryWait),
        (Running, Verb::Fail) => Ok(Failed),
        (Running, Verb::Yield) => Ok(Pending),
        (Blocked | Pending | Running | RetryWait | Failed | Aborted, Verb::Cancel) => Ok(Canceled),
        (Blocked | Pending, Verb::Skip) => Ok(Skipped),
        (Blocked | Pending | RetryWait | Failed, Verb::Mark) => Ok(Succeeded),
        (Blocked | Pending | Running | RetryWait, Verb::Abort) => Ok(Aborted),
        // A job in retry_wait still holds its slot; a failed job has released it.
        (RetryWait, Verb::RetryNow) => Ok(Pending),
        (Failed, Verb::RetryNow) | (Aborted, Verb::Resume) => Ok(entry),
        (Succeeded | Canceled | Skipped, Verb::Rerun) => Ok(entry),
        (Blocked | Pending | RetryWait, Verb::Snooze) => Ok(state),
        (Blocked | Pending | RetryWait | Failed | Aborted, Verb::Edit) => Ok(state),
        _ => Err(IllegalTransition { from, verb }),
    }
}

/// Returns the states in which `verb` is allowed, for statements that bind them.
#[must_use]
pub fn states_allowing(verb: Verb) -> Vec<JobState> {
    JobState::ALL
        .iter()
        .copied()
        .filter(|&state| transition(Some(state), verb, Readiness::Ready).is_ok())
        .collect()
}

/// Returns every allowed change as (state before, verb, state after), each once.
#[must_use]
pub fn graph() -> Vec<(Option<JobState>, Verb, JobState)> {
    let states = std::iter::once(None).chain(JobState::ALL.iter().copied().map(Some));
    let mut graph: Vec<_> = states
        .flat_map(|from| Verb::ALL.iter().map(move |&verb| (from, verb)))
        .flat_map(|(from, verb)| {
            [Readiness::Ready, Readiness::Held]
                .into_iter()
                .filter_map(move |readiness| Some((from, verb, transition(from, verb, readiness).ok()?)))
        })
        .collect();
    graph.dedup();
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::Action as _;
    use crate::actions::job::JobAction;

    #[test]
    fn the_graph_has_each_change_once() {
        let graph = graph();
        let distinct: std::collections::HashSet<_> = graph.iter().collect();
        assert_eq!(distinct.len(), graph.len());
        assert!(graph.contains(&(None, Verb::Create, JobState::Blocked)));
        assert!(graph.contains(&(Some(JobState::Failed), Verb::RetryNow, JobState::Blocked)));
    }

    #[test]
    fn ended_jobs_allow_nothing_but_a_rerun() {
        for &state in JobState::ALL.iter().filter(|state| state.is_ended()) {
            for &verb in Verb::ALL {
                let allowed = transition(Some(state), verb, Readiness::Ready).is_ok();
                assert_eq!(allowed, verb == Verb::Rerun, "{state} {verb}");
            }
        }
    }

    #[test]
    fn a_job_that_does_not_exist_can_only_be_created() {
        for &verb in Verb::ALL {
            assert_eq!(transition(None, verb, Readiness::Ready).is_ok(), verb == Verb::Create);
        }
        assert_eq!(transition(None, Verb::Create, Readiness::Held), Ok(JobState::Blocked));
    }

    #[test]
    fn only_pending_and_retry_wait_can_be_claimed() {
        assert_eq!(states_allowing(Verb::Claim), [JobState::Pending, JobState::RetryWait]);
    }

    #[test]
    fn readiness_never_decides_whether_a_verb_is_allowed() {
        for &state in JobState::ALL {
            for &verb in Verb::ALL {
                let ready = transition(Some(state), verb, Readiness::Ready);
                let held = transition(Some(state), verb, Readiness::Held);
                assert_eq!(ready.is_ok(), held.is_ok(), "{state} {verb}");
            }
        }
    }

    #[test]
    fn names_read_back_as_themselves() {
        for &verb in Verb::ALL {
            assert_eq!(verb.as_str().parse(), Ok(verb));
        }
        for &state in JobState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("running ".parse::<JobState>().is_err());
    }

    /// Returns the meanings of an enum's values, from its source.
    fn meanings(source: &str) -> Vec<(&str, &str)> {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let values = lines.windows(2).filter_map(|pair| {
            let meaning = pair[0].strip_prefix("/// ")?;
            let name = pair[1].strip_suffix("\",")?.split_once(" = \"")?.1;
            Some((name, meaning))
        });
        values.collect()
    }

    fn page() -> String {
        let of_states = meanings(include_str!("state.rs"));
        let of_verbs = meanings(include_str!("transition.rs"));
        let mut page = "\n| state | meaning | changes |\n|---|---|---|\n".to_owned();
        for state in JobState::ALL {
            let (_, meaning) = of_states.iter().find(|(name, _)| *name == state.as_str()).unwrap();
            let changes: Vec<String> = graph()
                .iter()
                .filter(|(from, ..)| *from == Some(*state))
                .map(|(_, verb, to)| format!("`{verb}` → `{to}`"))
                .collect();
            page += &format!("| `{state}` | {meaning} | {} |\n", changes.join(", "));
        }
        page += "\n| change | meaning | from | to |\n|---|---|---|---|\n";
        for verb in Verb::ALL {
            let (_, meaning) = of_verbs.iter().find(|(name, _)| *name == verb.as_str()).unwrap();
            let graph = graph();
            let of_verb: Vec<_> = graph.iter().filter(|(_, found, _)| found == verb).collect();
            let listed = |names: Vec<String>| {
                let distinct: std::collections::BTreeSet<String> = names.into_iter().collect();
                distinct.into_iter().collect::<Vec<_>>().join(", ")
            };
            let from = of_verb.iter().filter_map(|(from, ..)| from.map(|from| format!("`{from}`")));
            let to = of_verb.iter().map(|(.., to)| format!("`{to}`"));
            page += &format!(
                "| `{verb}` | {meaning} | {} | {} |\n",
                listed(from.collect()),
                listed(to.collect())
            );
        }
        page + &actions() + "\n"
    }

    /// Describes the actions of operators.
    fn actions() -> String {
        let mut table = "\n## Actions of operators\n\nThe name is that of the command (`milepost jobs`), of `operation` in the API and of the button in the \
                         console; `milepost.change` in SQL has the name of the change.\n\n| action | change | effect | in state |\n|---|---|---|---|\n"
            .to_owned();
        for action in JobAction::ALL {
            let of = |state: &JobState| {
                action.verb(*state).map(|verb| (format!("`{state}`"), format!("`{verb}`")))
            };
            let (states, verbs): (Vec<String>, Vec<String>) = JobState::ALL.iter().filter_map(of).unzip();
            let verbs: std::collections::BTreeSet<String> = verbs.into_iter().collect();
            let verbs = verbs.into_iter().collect::<Vec<_>>().join(" or ");
            table += &format!("| `{action}` | {verbs} | {} | {} |\n", action.effect(), states.join(", "));
        }
        table
    }

    /// Run with `MILEPOST_UPDATE_DOCS=1` to update the page.
    #[test]
    fn the_page_of_states_is_that_of_the_code() {
        const BEGIN: &str = "<!-- states: made from the code -->\n";
        const END: &str = "<!-- end of states -->\n";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/STATES.md");
        let mut written = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = written.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let expected = format!("{head}{BEGIN}{}{END}{tail}", page());
        if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &expected).unwrap();
            written.clone_from(&expected);
        }
        assert!(written == expected, "docs/STATES.md differs; run this test with MILEPOST_UPDATE_DOCS=1");
    }
}
