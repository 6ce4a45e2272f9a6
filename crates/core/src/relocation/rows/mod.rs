//! Rows as they are carried: every column that both stores have, with the domain's types. Texts called JSON are kept
//! as they are.

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

pub use batch::{Batch, BatchInput, BatchNote, BatchSpread, BatchTask, Dag, DagTask, DagVersion};
pub use bulk::{Bulk, BulkDefinition, BulkFailure, BulkFile, BulkSetting, BulkTarget};
pub use event::Head;
pub use inbox::{Checkpoint, InboxTally, ParkedEvent, ProcessedEvent};
pub use job::{Ended, Job, Key, Live, Progress, Slot};
pub use relay::{ChangeSource, DeadEvent, HeldEvent, ParkedAggregate, Pause, Subscription};

/// A row that can be carried.
pub trait Row {
    /// Its key.
    fn position(&self) -> Position;

    /// How long its texts of any length are, in bytes.
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
            /// Which part they are of.
            #[must_use]
            pub const fn part(&self) -> Part {
                match self {
                    $(Self::$part(_) => Part::$part,)+
                }
            }

            /// How many there are.
            #[must_use]
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$part(rows) => rows.len(),)+
                }
            }

            /// Whether there are none.
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
    /// Its name for people.
    pub name: String,
    /// The queues it served.
    pub queues: Vec<String>,
    /// The kinds it had handlers for.
    pub kinds: Vec<String>,
    /// How long it could go without a heartbeat.
    pub lease_ms: i64,
    /// When it registered.
    pub started_at: Timestamp,
    /// Its last heartbeat.
    pub heartbeat_at: Timestamp,
    /// When its lease ran out.
    pub lease_expires_at: Timestamp,
    /// When it left or was declared dead.
    pub ended_at: Option<Timestamp>,
    /// Whether it was declared dead.
    pub died: bool,
    /// Whether jobs still stand as run by it.
    pub holds: bool,
}

impl Row for Worker {
    fn position(&self) -> Position {
        Position::Number(self.id.0.into())
    }
}

/// A queue that somebody has paused at some time.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Since when it is paused.
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
    /// Which kind.
    pub kind: String,
    /// How fast.
    pub rate: Rate,
    /// When the bucket is full.
    pub full_at: Timestamp,
    /// Who says so.
    pub source: Source,
}

impl Row for KindLimit {
    fn position(&self) -> Position {
        Position::Name(self.kind.clone())
    }
}

/// The limit of a group or a class of groups.
#[derive(Clone, Debug)]
pub struct GroupLimit {
    /// The group or class.
    pub name: String,
    /// How many at once.
    pub slots: Option<u32>,
    /// How fast.
    pub rate: Option<Rate>,
    /// Who says so.
    pub source: Source,
}

impl Row for GroupLimit {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// The bucket of a group that was used lately.
#[derive(Clone, Debug)]
pub struct GroupBucket {
    /// Which group.
    pub group: String,
    /// When it is full.
    pub full_at: Timestamp,
    /// When to look at the group again.
    pub look_at: Option<Timestamp>,
}

impl Row for GroupBucket {
    fn position(&self) -> Position {
        Position::Name(self.group.clone())
    }
}

/// Work that comes back. Its words are not read: a schedule that cannot be read moves, too.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// A cron expression, or an interval.
    pub spec: String,
    /// By whose clock.
    pub time_zone: String,
    /// The kind of its jobs.
    pub kind: String,
    /// Their queue.
    pub queue: String,
    /// Their payload, JSON.
    pub payload: String,
    /// Their priority.
    pub priority: u8,
    /// How many attempts they get.
    pub max_attempts: u32,
    /// Their group.
    pub group: Option<String>,
    /// How long an attempt may take.
    pub timeout_ms: Option<i64>,
    /// What becomes of missed ticks.
    pub misfire: String,
    /// How many of them get a job.
    pub misfire_max: Option<u32>,
    /// How late is not missed.
    pub misfire_grace_ms: i64,
    /// Who says so.
    pub source: Source,
    /// Rises with every change.
    pub version: i64,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// The first tick that nobody has seen to.
    pub next_at: Option<Timestamp>,
    /// The last tick that made a job.
    pub last_at: Option<Timestamp>,
    /// How many jobs it made.
    pub fired: i64,
    /// How many ticks made none.
    pub dropped: i64,
    /// What it starts batches of.
    pub dag: Option<String>,
    /// The last tick, if its batch could not be started.
    pub refused_at: Option<Timestamp>,
    /// Why it could not.
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

/// What somebody did to the store.
#[derive(Clone, Debug)]
pub struct Note {
    /// Its place.
    pub pos: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub who: String,
    /// What.
    pub what: String,
    /// To what.
    pub subject: Option<String>,
    /// Why.
    pub why: Option<String>,
    /// How that stood before and after, JSON.
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

/// Who may ask servers for what.
#[derive(Clone, Debug)]
pub struct AccessToken {
    /// What is known of it.
    pub view: TokenView,
    /// What its secret hashes to.
    pub hash: Digest,
}

impl Row for AccessToken {
    fn position(&self) -> Position {
        Position::Name(self.view.prefix.clone())
    }
}
