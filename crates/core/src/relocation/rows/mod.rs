//! Rows that a move transfers: the columns that both stores have, with the domain's types. Texts described as JSON are
//! transferred unchanged.

mod batch;
mod bulk;
mod event;
mod inbox;
mod job;
mod relay;

use jiff::Timestamp;

use super::{Part, Position};
use crate::event::listing::LoggedEvent;
use crate::history::HistoryEntry;
use crate::ident::WorkerId;
use crate::inbox::Consumer;
use crate::inbox::listing::DeadLetter;
use crate::limit::{Rate, Source};
use crate::token::{Digest, TokenView};

pub use batch::{
    Batch, BatchInput, BatchNote, BatchSignal, BatchSpread, BatchTask, BatchWait, Dag, DagTask, DagVersion,
};
pub use bulk::{Bulk, BulkDefinition, BulkFailure, BulkFile, BulkSetting, BulkTarget};
pub use event::Head;
pub use inbox::{Checkpoint, InboxTally, ParkedEvent, ProcessedEvent};
pub use job::{Ended, Job, Key, Live, Progress, Slot};
pub use relay::{ChangeSource, DeadEvent, EventWork, HeldEvent, ParkedAggregate, Pause, Subscription};

/// A row that can be transferred.
pub trait Row {
    /// Returns its key.
    fn position(&self) -> Position;

    /// Returns the total size of its texts of unbounded length, in bytes.
    fn bytes(&self) -> usize {
        0
    }
}

macro_rules! rows {
    ($($part:ident($row:ident),)+) => {
        /// Rows of one part, in the order of their keys.
        #[derive(Clone, Debug)]
        pub enum Rows {
            $(#[doc = concat!("Of [`Part::", stringify!($part), "`].")] $part(Vec<$row>),)+
        }

        impl Rows {
            /// Returns the part that the rows belong to.
            #[must_use]
            pub const fn part(&self) -> Part {
                match self {
                    $(Self::$part(_) => Part::$part,)+
                }
            }

            /// Returns the number of rows.
            #[must_use]
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$part(rows) => rows.len(),)+
                }
            }

            /// Returns whether there are no rows.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

rows! {
    Workers(Worker),
    Queues(Queue),
    KindLimits(KindLimit),
    GroupLimits(GroupLimit),
    GroupBuckets(GroupBucket),
    RetentionSettings(RetentionSetting),
    Schedules(Schedule),
    BulkDefinitions(BulkDefinition),
    DagVersions(DagVersion),
    Dags(Dag),
    DagTasks(DagTask),
    Audit(Note),
    AccessTokens(AccessToken),
    Jobs(Job),
    Keys(Key),
    Progress(Progress),
    Bulks(Bulk),
    BulkSettings(BulkSetting),
    BulkFailures(BulkFailure),
    BulkFiles(BulkFile),
    BulkTargets(BulkTarget),
    Batches(Batch),
    BatchInputs(BatchInput),
    BatchTasks(BatchTask),
    BatchSpreads(BatchSpread),
    BatchWaits(BatchWait),
    BatchSignals(BatchSignal),
    BatchHistory(BatchNote),
    Aggregates(Head),
    Events(LoggedEvent),
    Consumers(Consumer),
    ProcessedEvents(ProcessedEvent),
    Checkpoints(Checkpoint),
    ParkedEvents(ParkedEvent),
    InboxLetters(DeadLetter),
    InboxTallies(InboxTally),
    Subscriptions(Subscription),
    ParkedAggregates(ParkedAggregate),
    HeldEvents(HeldEvent),
    DeadEvents(DeadEvent),
    EventWorks(EventWork),
    History(HistoryEntry),
    ChangeSources(ChangeSource),
    Slots(Slot),
    Ended(Ended),
    Live(Live),
}

/// A process incarnation.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// Its name for operators.
    pub name: String,
    /// The queues it served.
    pub queues: Vec<String>,
    /// The kinds it had handlers for.
    pub kinds: Vec<String>,
    /// The maximum time without a heartbeat.
    pub lease_ms: i64,
    /// When it registered.
    pub started_at: Timestamp,
    /// Its last heartbeat.
    pub heartbeat_at: Timestamp,
    /// When its lease expires.
    pub lease_expires_at: Timestamp,
    /// When it left or was declared dead.
    pub ended_at: Option<Timestamp>,
    /// Whether it was declared dead.
    pub died: bool,
    /// Whether jobs are still recorded as held by it.
    pub holds: bool,
}

impl Row for Worker {
    fn position(&self) -> Position {
        Position::Number(self.id.0.into())
    }
}

/// A queue that has been paused at some time.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Since when it is paused; `None` if it is not.
    pub paused_at: Option<Timestamp>,
}

impl Row for Queue {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// The rate of a kind, with its bucket.
#[derive(Clone, Debug)]
pub struct KindLimit {
    /// The kind.
    pub kind: String,
    /// The maximum rate of starts.
    pub rate: Rate,
    /// When the bucket is full again.
    pub full_at: Timestamp,
    /// Its origin: an operator or a configuration.
    pub source: Source,
}

impl Row for KindLimit {
    fn position(&self) -> Position {
        Position::Name(self.kind.clone())
    }
}

/// A retention period that an operator has set.
#[derive(Clone, Debug)]
pub struct RetentionSetting {
    /// What it applies to.
    pub name: String,
    /// How long that is kept; `None`: forever.
    pub keep_ms: Option<i64>,
}

impl Row for RetentionSetting {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// The limit of a group or a class of groups.
#[derive(Clone, Debug)]
pub struct GroupLimit {
    /// The group or class.
    pub name: String,
    /// The maximum number of jobs in flight.
    pub slots: Option<u32>,
    /// The maximum rate of starts.
    pub rate: Option<Rate>,
    /// Its origin: an operator or a configuration.
    pub source: Source,
}

impl Row for GroupLimit {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// The bucket of a recently used group.
#[derive(Clone, Debug)]
pub struct GroupBucket {
    /// The group.
    pub group: String,
    /// When it is full again.
    pub full_at: Timestamp,
    /// When the group must be processed again.
    pub look_at: Option<Timestamp>,
    /// The number of its jobs with a reserved start at the last check.
    pub reserved: u32,
}

impl Row for GroupBucket {
    fn position(&self) -> Position {
        Position::Name(self.group.clone())
    }
}

/// A schedule. Its texts are transferred without parsing, so that an unreadable schedule is transferred too.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// A cron expression, or an interval.
    pub spec: String,
    /// The time zone of its wall-clock times.
    pub time_zone: String,
    /// The kind of its jobs.
    pub kind: String,
    /// Their queue.
    pub queue: String,
    /// Their payload, JSON.
    pub payload: String,
    /// Their priority.
    pub priority: u8,
    /// The maximum number of attempts of a job.
    pub max_attempts: u32,
    /// Their group.
    pub group: Option<String>,
    /// The time limit of an attempt.
    pub timeout_ms: Option<i64>,
    /// The policy for missed ticks.
    pub misfire: String,
    /// The maximum number of missed ticks that get a job, for the policy `all`.
    pub misfire_max: Option<u32>,
    /// How late a tick may be without being missed.
    pub misfire_grace_ms: i64,
    /// Its origin: an operator or a configuration.
    pub source: Source,
    /// The version, which increases with every change.
    pub version: i64,
    /// When it was paused; `None` if it is not paused.
    pub paused_at: Option<Timestamp>,
    /// The first tick that has not been processed.
    pub next_at: Option<Timestamp>,
    /// The last tick that created a job or a batch.
    pub last_at: Option<Timestamp>,
    /// The number of jobs or batches it created.
    pub fired: i64,
    /// The number of ticks that created nothing.
    pub dropped: i64,
    /// The DAG of its batches.
    pub dag: Option<String>,
    /// The last tick, if its batch could not be started.
    pub refused_at: Option<Timestamp>,
    /// Why it could not be started.
    pub refusal: Option<String>,
}

impl Row for Schedule {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }

    fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// An audit row.
#[derive(Clone, Debug)]
pub struct Note {
    /// Its position.
    pub pos: i64,
    /// The time.
    pub at: Timestamp,
    /// The actor.
    pub who: String,
    /// The action.
    pub what: String,
    /// The object of the action.
    pub subject: Option<String>,
    /// The reason.
    pub why: Option<String>,
    /// The object's state before and after, JSON.
    pub detail: String,
}

impl Row for Note {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        self.detail.len()
    }
}

/// An access token.
#[derive(Clone, Debug)]
pub struct AccessToken {
    /// Its public properties.
    pub view: TokenView,
    /// The hash of its secret.
    pub hash: Digest,
}

impl Row for AccessToken {
    fn position(&self) -> Position {
        Position::Name(self.view.prefix.clone())
    }
}
