//! The life of one job: workers, an operator and a rescuer, with crashes, expired leases, late calls and lost answers.

mod completion;
pub mod replay;
mod rules;
mod state;
mod store;

use std::collections::BTreeSet;

use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb};
use stateright::{Model, Property};

pub use rules::{Defect, Rule};
pub use state::{Action, Delivery, State};
use state::{Activity, Call, Worker};
use store::{Claimed, Lease, Store};

/// The number of attempts that the job is enqueued with: the second failure is a dead letter.
const ATTEMPTS_ASKED: u32 = 2;

/// The model. The numbers bound the states.
#[derive(Clone, Debug)]
pub struct JobLife {
    /// The defect of the stores, if one is put back.
    pub defect: Option<Defect>,
    /// The number of workers.
    pub workers: usize,
    /// The number of crashes, expired leases of workers that continue, late calls and lost answers.
    pub faults: u8,
    /// The number of actions of an operator.
    pub operations: u8,
    /// The number of claims.
    pub claims: usize,
}

impl JobLife {
    /// Returns the model that the tests check.
    #[must_use]
    pub const fn new(defect: Option<Defect>) -> Self {
        Self { defect, workers: 2, faults: 2, operations: 2, claims: 3 }
    }

    fn actions_of_worker(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let Worker { registration, activity } = &state.workers[index];
        let deliveries = || {
            let faulty = [Delivery::AnswerLost, Delivery::Late];
            std::iter::once(Delivery::Answered).chain(faulty.into_iter().filter(|_| state.faults > 0))
        };
        match activity {
            Activity::Idle => {
                if state.store.token < self.claims && state.store.state.is_waiting() {
                    actions.extend(deliveries().map(|delivery| Action::Claim(index, delivery)));
                }
                if state.store.held(*registration).is_some() {
                    actions.push(Action::Adopt(index));
                }
            }
            Activity::Runs { run, told } => {
                for verb in reports(*run, *told) {
                    actions.extend(deliveries().map(|delivery| Action::Report(index, verb, delivery)));
                }
                let has_request = state.store.stop.is_some() && state.store.stop != *told;
                if has_request && state.store.held(*registration).is_some() {
                    actions.push(Action::Told(index));
                }
            }
            Activity::Repeats { verb, .. } => {
                actions.extend(deliveries().map(|delivery| Action::Report(index, *verb, delivery)));
            }
        }
        if state.store.leases[*registration] != Lease::Valid {
            actions.push(Action::RegisterAgain(index));
        }
        if state.faults > 0 && *activity != Activity::Idle {
            actions.push(Action::Crash(index));
        }
    }

    fn actions_of_rescuer(&self, state: &State, actions: &mut Vec<Action>) {
        if state.rescuer.is_some() {
            actions.extend([Action::TakeBack, Action::RescuerCrashes]);
            return;
        }
        for (worker, lease) in state.store.leases.iter().enumerate() {
            let is_lost = match lease {
                Lease::Valid => self.defect == Some(Defect::RescueOfLiveWorker),
                Lease::Expired => true,
                Lease::Lost => false,
            };
            // Nothing depends on the mark of a worker without a run.
            if is_lost && state.store.held(worker).is_some() {
                actions.push(Action::MarkLost(worker));
            }
            let is_forgotten = self.defect == Some(Defect::RescueForgetsMarkedWorkers);
            if !is_forgotten && state.store.read_lost(worker).is_some() {
                actions.push(Action::ReadLost(worker));
            }
        }
        if state.store.state == JobState::Running && state.store.stop.is_some() {
            actions.push(Action::StopOverdue);
        }
        if state.store.state == JobState::Blocked {
            actions.push(Action::Release);
        }
    }

    /// Executes a call whose caller waits no longer.
    fn arrive(&self, state: &mut State, call: Call) {
        match call {
            Call::Claim(worker) => {
                if state.store.token < self.claims {
                    state.store.claim(worker, self.defect);
                }
            }
            Call::End { token, verb } => {
                state.store.finish(token, verb, self.defect);
            }
        }
    }

    fn claim(&self, state: &mut State, index: usize, delivery: Delivery) {
        let registration = state.workers[index].registration;
        if delivery == Delivery::Late {
            state.late.insert(Call::Claim(registration));
            return;
        }
        let claimed = state.store.claim(registration, self.defect);
        if let (Some(run), Delivery::Answered) = (claimed, delivery) {
            state.workers[index].activity = Activity::Runs { run, told: None };
        }
    }

    fn report(&self, state: &mut State, index: usize, verb: Verb, delivery: Delivery) {
        let token = match state.workers[index].activity {
            Activity::Idle => return,
            Activity::Runs { run, .. } => run.token,
            Activity::Repeats { token, .. } => token,
        };
        if delivery == Delivery::Late {
            state.late.insert(Call::End { token, verb });
        } else {
            state.store.finish(token, verb, self.defect);
        }
        let is_answered = delivery == Delivery::Answered;
        state.workers[index].activity =
            if is_answered { Activity::Idle } else { Activity::Repeats { token, verb } };
    }

    /// Applies a step of a worker.
    fn step_of_worker(&self, state: &mut State, action: Action) {
        match action {
            Action::Claim(index, delivery) => {
                state.faults -= u8::from(delivery != Delivery::Answered);
                self.claim(state, index, delivery);
            }
            Action::Report(index, verb, delivery) => {
                state.faults -= u8::from(delivery != Delivery::Answered);
                self.report(state, index, verb, delivery);
            }
            Action::Adopt(index) => {
                if let Some(run) = state.store.held(state.workers[index].registration) {
                    state.workers[index].activity = Activity::Runs { run, told: None };
                }
            }
            Action::Told(index) => {
                if let Activity::Runs { told, .. } = &mut state.workers[index].activity {
                    *told = state.store.stop;
                }
            }
            Action::Crash(index) => {
                state.faults -= 1;
                state.begin_again(index);
            }
            Action::RegisterAgain(index) => state.begin_again(index),
            _ => {}
        }
    }
}

/// Returns the ends that a worker can report.
fn reports(run: Claimed, told: Option<Verb>) -> impl Iterator<Item = Verb> {
    let failed = if run.is_last { Verb::Fail } else { Verb::Retry };
    [Verb::Succeed, failed, Verb::Yield].into_iter().chain(told)
}

/// Returns the actions of an operator that the state allows.
fn operations(state: JobState) -> Vec<Action> {
    let operate = |verb, grace| [Action::Operate(verb, grace, true), Action::Operate(verb, grace, false)];
    let [ready, held] = match state {
        JobState::Running => {
            let stops = [Verb::Cancel, Verb::Abort].into_iter();
            return stops
                .flat_map(|verb| [true, false].map(|grace| Action::Operate(verb, grace, true)))
                .chain([Action::WithdrawAbort])
                .collect();
        }
        JobState::Failed => operate(Verb::RetryNow, false),
        JobState::Aborted => operate(Verb::Resume, false),
        JobState::Succeeded | JobState::Canceled | JobState::Skipped => operate(Verb::Rerun, false),
        JobState::Blocked | JobState::Pending => operate(Verb::Skip, false),
        JobState::RetryWait => operate(Verb::RetryNow, false),
    };
    let others = [Verb::Cancel, Verb::Abort, Verb::Mark].map(|verb| Action::Operate(verb, false, true));
    [ready, held].into_iter().chain(others).collect()
}

impl Model for JobLife {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let worker = |registration| Worker { registration, activity: Activity::Idle };
        vec![State {
            store: Store::new(JobState::Pending, ATTEMPTS_ASKED, self.workers),
            workers: (0..self.workers).map(worker).collect(),
            late: BTreeSet::new(),
            rescuer: None,
            faults: self.faults,
            operations: self.operations,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken().is_some() {
            return;
        }
        for index in 0..state.workers.len() {
            self.actions_of_worker(state, index, actions);
        }
        self.actions_of_rescuer(state, actions);
        actions.extend((0..state.late.len()).map(Action::Arrive));
        for (registration, lease) in state.store.leases.iter().enumerate() {
            let is_free = !state.is_used(registration) && state.store.held(registration).is_some();
            if *lease == Lease::Valid && (is_free || state.is_used(registration) && state.faults > 0) {
                actions.push(Action::Expire(registration));
            }
        }
        if state.operations > 0 {
            actions.extend(operations(state.store.state));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Expire(registration) => {
                state.faults -= u8::from(state.is_used(registration));
                state.store.leases[registration] = Lease::Expired;
            }
            Action::Arrive(index) => {
                let call = *last.late.iter().nth(index)?;
                state.late.remove(&call);
                self.arrive(&mut state, call);
            }
            Action::MarkLost(worker) => state.rescuer = state.store.mark_lost(worker, self.defect),
            Action::ReadLost(worker) => state.rescuer = state.store.read_lost(worker),
            Action::TakeBack => state.store.take_back(state.rescuer.take()?, self.defect),
            Action::RescuerCrashes => state.rescuer = None,
            Action::Operate(verb, grace, is_ready) => {
                state.operations -= 1;
                let readiness = if is_ready { Readiness::Ready } else { Readiness::Held };
                state.store.operate(verb, grace, readiness, self.defect);
            }
            Action::WithdrawAbort => {
                state.operations -= 1;
                state.store.withdraw_abort(self.defect);
            }
            Action::StopOverdue => state.store.stop_overdue(),
            Action::Release => state.store.release(),
            of_worker => self.step_of_worker(&mut state, of_worker),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            keeps::<{ Rule::OneEnd as usize }>(),
            keeps::<{ Rule::TokensRise as usize }>(),
            keeps::<{ Rule::LeasesDoNotOverlap as usize }>(),
            keeps::<{ Rule::EndedStaysEnded as usize }>(),
            keeps::<{ Rule::CancelIsFinal as usize }>(),
            keeps::<{ Rule::AttemptsAreLimited as usize }>(),
            keeps::<{ Rule::RepeatsAreRecognized as usize }>(),
            keeps::<{ Rule::ChangesAreAllowed as usize }>(),
            Property::always(Rule::EveryJobCanEnd.name(), |model: &Self, state: &State| {
                state.broken().is_some() || completion::can_end(&state.store, model.defect)
            }),
        ]
    }
}

/// Returns the property that a state has not broken the rule with this index. Properties are plain functions, so the rule is a parameter of
/// the type.
fn keeps<const RULE: usize>() -> Property<JobLife> {
    Property::always(Rule::ALL[RULE].name(), |_, state: &State| state.broken() != Some(Rule::ALL[RULE]))
}
