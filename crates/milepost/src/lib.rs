#![doc = include_str!("guide.md")]

mod attempt;
mod batches;
pub mod bulk;
mod claimer;
mod completer;
mod context;
mod coordination;
mod coordinator;
mod end_channel;
mod executor;
mod handler;
mod heartbeat;
mod maintenance;
mod options;
mod outcome;
mod registration;
mod reporter;
mod retention;
mod run_reports;
mod runs_in_hand;
mod shared;
mod span;
pub mod sql;
pub mod testing;
mod ticker;
mod worker;

pub use context::Context;
pub use handler::{Handler, Job, KindOptions};
pub use jiff::Timestamp;
#[doc(inline)]
pub use milepost_core::batch::start::{NewBatch, Started};
#[doc(inline)]
pub use milepost_core::batch::wait::{NewSignal, SignalResult};
#[doc(inline)]
pub use milepost_core::claim::ClaimedJob;
#[doc(inline)]
pub use milepost_core::error::{SchemaError, StoreError};
#[doc(inline)]
pub use milepost_core::history::HistoryEntry;
#[doc(inline)]
pub use milepost_core::ident::{EventId, JobId, Run, RunToken, WorkerId};
#[doc(inline)]
pub use milepost_core::job::duplicate::{DuplicateAction, EnqueueOutcome, OnDuplicate, Unique};
pub use milepost_core::job::error::InvalidJob;
pub use milepost_core::job::{Enqueued, NewJob, Priority, StartAt};
#[doc(inline)]
pub use milepost_core::limit::{InvalidLimit, Limit, LimitView, Rate, Target};
#[doc(inline)]
pub use milepost_core::listing::{JobRow, JobView, QueueView, Waiting};
pub use milepost_core::named::UnknownName;
#[doc(inline)]
pub use milepost_core::port::{
    AdminStore, BulkStore, Coordination, CoordinationHealth, DoctorStore, EventLog, InboxStore, IntakeStore,
    LimitStore, MaintenanceStore, Operated, Operation, ScheduleStore, Store, StoreResult, WorkerStore,
};
#[doc(inline)]
pub use milepost_core::precedence::Put;
#[doc(inline)]
pub use milepost_core::retention::{InvalidRetention, Keep, RetentionPolicy};
#[doc(inline)]
pub use milepost_core::retry::RetryPolicy;
pub use milepost_core::schedule::{InvalidSchedule, Misfire, Schedule, ScheduleView, Source, Spec};
pub use milepost_core::search::JobFilter;
#[doc(inline)]
pub use milepost_core::state::JobState;
#[doc(inline)]
pub use milepost_core::stats::{DistributionView, SpreadView, StatsView};
#[doc(inline)]
pub use milepost_core::transition::{IllegalTransition, Verb};
#[doc(inline)]
pub use milepost_core::worker::{Progress, WorkerView};
#[doc(no_inline)]
pub use milepost_core::{event, inbox, limit, schedule, trace};
pub use options::WorkerOptions;
pub use outcome::{IntoOutcome, JobError, Outcome};
pub use retention::forget_events;
pub use tokio_util::sync::CancellationToken;
pub use worker::{Worker, WorkerBuilder, WorkerCounters};
