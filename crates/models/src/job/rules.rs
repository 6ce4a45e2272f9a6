//! The rules that the model of a job's life checks, and the defects that break them.

/// A rule that every state must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Each run has at most one accepted end.
    OneEnd,
    /// A claim has a larger run token than all claims before it.
    TokensRise,
    /// A run begins after the previous one has ended, and is taken back only after its lease.
    LeasesDoNotOverlap,
    /// A job that has ended changes only by a rerun.
    EndedStaysEnded,
    /// A run of which a cancel was requested ends as canceled, or succeeds.
    CancelIsFinal,
    /// No attempt begins beyond the maximum number of attempts.
    AttemptsAreLimited,
    /// The answer to a report is `Repeated` exactly if the same end was stored before, also if an operator's stop ended the run so.
    RepeatsAreRecognized,
    /// Every change is a transition of the product's table.
    ChangesAreAllowed,
    /// Without further faults, every unfinished job ends, at most after one action of an operator.
    EveryJobCanEnd,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 9] = [
        Self::OneEnd,
        Self::TokensRise,
        Self::LeasesDoNotOverlap,
        Self::EndedStaysEnded,
        Self::CancelIsFinal,
        Self::AttemptsAreLimited,
        Self::RepeatsAreRecognized,
        Self::ChangesAreAllowed,
        Self::EveryJobCanEnd,
    ];

    /// Returns the name of the property in the checker's output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneEnd => "each run has at most one accepted end",
            Self::TokensRise => "run tokens only rise",
            Self::LeasesDoNotOverlap => "leases do not overlap",
            Self::EndedStaysEnded => "an ended job stays ended, except for a rerun",
            Self::CancelIsFinal => "a requested cancel is final",
            Self::AttemptsAreLimited => "attempts never exceed the maximum",
            Self::RepeatsAreRecognized => "a repeated report is recognized",
            Self::ChangesAreAllowed => "every change is an allowed transition",
            Self::EveryJobCanEnd => "every job can end",
        }
    }
}

/// A defect of the stores that the checker must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// The end of a run is stored without a check of its token.
    EndIsNotFenced,
    /// A claim does not raise the run token.
    ClaimKeepsToken,
    /// A rescue takes back a run that it read earlier, without a check that the run still has the job.
    RescueWithoutStateGuard,
    /// A rescue does not check the lease of the worker.
    RescueOfLiveWorker,
    /// A rescue retries a job without regard to its maximum number of attempts.
    RescueIgnoresMaximum,
    /// A rescuer that crashed after it marked a worker as lost is not followed by another one.
    RescueForgetsMarkedWorkers,
    /// An end that is reported again is not looked up in the history.
    EndRepeatedWithoutKey,
    /// A report is answered with `Repeated` although the end in the history is that of a rescue.
    RescueCountsAsReport,
    /// A resume of a batch withdraws not only a requested abort, but also a requested cancel.
    ResumeLosesCancel,
    /// An abort replaces a cancel that was requested before.
    AbortReplacesCancel,
}
