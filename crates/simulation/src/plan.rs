//! The faults of a run, as a seed determines them.

use std::fmt;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// The number of faults of an hour.
const FAULTS_PER_HOUR: u64 = 120;
/// The longest time for which a process is down or frozen, in milliseconds: three leases.
const DOWN_MS_MAX: u64 = 90_000;
/// The longest time for which calls fail, in milliseconds.
const CALLS_MS_MAX: u64 = 20_000;
/// The longest time for which heartbeats fail, in milliseconds: close to a lease.
const HEARTBEATS_MS_MAX: u64 = 28_000;
/// The calls of a worker from which on its heartbeats fail.
const WORKING: [&str; 3] = ["claim", "chunk", "finish_many"];
/// The most by which the clock is set, in milliseconds.
const CLOCK_MS_MAX: i64 = 600_000;
/// The number of workers, which are the first processes.
const WORKERS: usize = 2;
/// The processes of a simulation.
pub const PROCESSES: [(&str, Role); 5] = [
    ("worker A", Role::Worker),
    ("worker B", Role::Worker),
    ("client A", Role::Client),
    ("client B", Role::Client),
    ("reader", Role::Reader),
];

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs jobs and publishes events.
    Worker,
    /// Enqueues, emits, starts and operates.
    Client,
    /// Follows the stream and takes events in.
    Reader,
}

impl Role {
    /// Returns its calls at which single faults are aimed.
    #[must_use]
    pub const fn calls(self) -> &'static [&'static str] {
        match self {
            Self::Worker => &[
                "claim",
                "finish_many",
                "heartbeat",
                "record_with_success",
                "rescue_expired",
                "tick_schedule",
                "advance_batches",
                "balance",
                "page",
                "commit",
                "start_work",
                "chunk",
            ],
            Self::Client => &["enqueue_many", "emit_many", "start_batch", "operate"],
            Self::Reader => &["balance", "page", "commit", "take_in", "feed"],
        }
    }
}

/// A fault. Processes are numbered as in [`PROCESSES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// A process dies, and starts again later.
    Crash {
        /// The process.
        process: usize,
        /// How long it is down, in milliseconds.
        for_ms: u64,
    },
    /// A process dies at its next call of this name, and starts again later.
    CrashAt {
        /// The process.
        process: usize,
        /// The call.
        call: String,
        /// Whether the store executes the call.
        executed: bool,
        /// How long the process is down, in milliseconds.
        for_ms: u64,
    },
    /// No call of a process begins or returns. Its timers and handlers continue.
    Freeze {
        /// The process.
        process: usize,
        /// How long, in milliseconds.
        for_ms: u64,
    },
    /// The answer of its next call of this name is lost.
    LoseAnswer {
        /// The process.
        process: usize,
        /// The call.
        call: String,
    },
    /// All answers of its calls are lost.
    LoseAnswers {
        /// The process.
        process: usize,
        /// How long, in milliseconds.
        for_ms: u64,
    },
    /// Its calls fail, and are not executed.
    FailCalls {
        /// The process.
        process: usize,
        /// How long, in milliseconds.
        for_ms: u64,
    },
    /// From its next call of this name on, its heartbeats fail and are not executed: it does not learn of stop requests, and works on.
    FailHeartbeats {
        /// The process, a worker.
        process: usize,
        /// The call.
        call: String,
        /// How long, in milliseconds.
        for_ms: u64,
    },
    /// Its calls take a second.
    SlowCalls {
        /// The process.
        process: usize,
        /// How long, in milliseconds.
        for_ms: u64,
    },
    /// The clock of the machine is set.
    SetClock {
        /// By how much, in milliseconds; back if it is negative.
        by_ms: i64,
    },
}

impl Fault {
    /// The names of all kinds.
    pub const KINDS: [&str; 9] = [
        "crash",
        "crash at a call",
        "freeze",
        "lost answer",
        "lost answers",
        "failed calls",
        "slow calls",
        "set clock",
        "failed heartbeats",
    ];

    /// The index of [`CrashAt`](Self::CrashAt) in [`KINDS`](Self::KINDS).
    pub const CRASH_AT: usize = 1;
    /// The index of [`LoseAnswer`](Self::LoseAnswer).
    pub const LOSE_ANSWER: usize = 3;
    /// The index of [`FailHeartbeats`](Self::FailHeartbeats).
    pub const FAIL_HEARTBEATS: usize = 8;

    /// Returns the index of its kind in [`KINDS`](Self::KINDS).
    #[must_use]
    pub const fn kind(&self) -> usize {
        match self {
            Self::Crash { .. } => 0,
            Self::CrashAt { .. } => Self::CRASH_AT,
            Self::Freeze { .. } => 2,
            Self::LoseAnswer { .. } => Self::LOSE_ANSWER,
            Self::LoseAnswers { .. } => 4,
            Self::FailCalls { .. } => 5,
            Self::SlowCalls { .. } => 6,
            Self::SetClock { .. } => 7,
            Self::FailHeartbeats { .. } => Self::FAIL_HEARTBEATS,
        }
    }

    fn generate(random: &mut Rng) -> Self {
        let process = random.usize(..PROCESSES.len());
        let calls = PROCESSES[process].1.calls();
        let call = calls[random.usize(..calls.len())].to_owned();
        let down_ms = random.u64(100..DOWN_MS_MAX);
        let for_ms = random.u64(100..CALLS_MS_MAX);
        match random.u8(..46) {
            0..4 => Self::Crash { process, for_ms: down_ms },
            4..14 => Self::CrashAt { process, call, executed: random.bool(), for_ms: down_ms },
            14..20 => Self::Freeze { process, for_ms: down_ms },
            20..30 => Self::LoseAnswer { process, call },
            30..33 => Self::LoseAnswers { process, for_ms },
            33..36 => Self::FailCalls { process, for_ms },
            36..39 => Self::SlowCalls { process, for_ms },
            39..45 => Self::FailHeartbeats {
                process: random.usize(..WORKERS),
                call: WORKING[random.usize(..WORKING.len())].to_owned(),
                for_ms: random.u64(100..HEARTBEATS_MS_MAX),
            },
            _ => Self::SetClock { by_ms: random.i64(-CLOCK_MS_MAX..CLOCK_MS_MAX) },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |process: &usize| PROCESSES[*process].0;
        match self {
            Self::Crash { process, for_ms } => {
                write!(f, "{} crashes, and starts again after {for_ms} ms", name(process))
            }
            Self::CrashAt { process, call, executed, for_ms } => {
                let when = if *executed { "after the store has executed" } else { "before" };
                write!(
                    f,
                    "{} crashes {when} its next {call}, and starts again after {for_ms} ms",
                    name(process)
                )
            }
            Self::Freeze { process, for_ms } => write!(f, "{} freezes for {for_ms} ms", name(process)),
            Self::LoseAnswer { process, call } => {
                write!(f, "{} loses the answer to its next {call}", name(process))
            }
            Self::LoseAnswers { process, for_ms } => {
                write!(f, "{} loses all answers for {for_ms} ms", name(process))
            }
            Self::FailCalls { process, for_ms } => {
                write!(f, "all calls of {} fail for {for_ms} ms", name(process))
            }
            Self::FailHeartbeats { process, call, for_ms } => {
                write!(f, "from its next {call} on, heartbeats of {} fail for {for_ms} ms", name(process))
            }
            Self::SlowCalls { process, for_ms } => {
                write!(f, "all calls of {} take a second for {for_ms} ms", name(process))
            }
            Self::SetClock { by_ms } => write!(f, "the clock is set by {by_ms} ms"),
        }
    }
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// When it happens, in milliseconds of virtual time since the begin.
    pub at_ms: u64,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, ms) = (self.at_ms / 1_000, self.at_ms % 1_000);
        write!(f, "{:02}:{:02}.{ms:03}  {}", s / 60, s % 60, self.fault)
    }
}

/// Everything that determines a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed of the load, of delays and of all random numbers.
    pub seed: u64,
    /// How long load and faults last, in milliseconds of virtual time.
    pub length_ms: u64,
    /// The faults, in the order of their times.
    pub faults: Vec<Planned>,
}

impl Plan {
    /// Returns the plan of a seed.
    #[must_use]
    pub fn generate(seed: u64, minutes: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let length_ms = minutes * 60_000;
        let mut faults: Vec<Planned> = (0..(minutes * FAULTS_PER_HOUR).div_ceil(60))
            .map(|_| Planned { at_ms: random.u64(..length_ms), fault: Fault::generate(&mut random) })
            .collect();
        faults.sort_by_key(|planned| planned.at_ms);
        Self { seed, length_ms, faults }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {} s", self.seed, self.length_ms / 1_000)?;
        self.faults.iter().try_for_each(|planned| writeln!(f, "{planned}"))
    }
}
