//! The ports: what the runtime, the operators' tools and callers need of a store, by consumer.
//!
//! What joins a caller's own transaction is not here: it is an inherent function of each store crate
//! that takes the caller's transaction, so that transactions stay honest.

mod admin;
mod audit;
mod batch;
mod bulk;
mod coordination;
mod doctor;
mod event;
mod feed;
mod inbox;
mod intake;
mod limit;
mod maintenance;
mod relay;
mod schedule;
mod search;
mod subscription;
mod token;
mod wake;
mod worker;

pub use admin::{AdminStore, Operated, Operation};
pub use audit::AuditStore;
pub use batch::BatchStore;
pub use bulk::{
    BulkProgress, BulkReader, BulkRows, BulkRun, BulkStaging, BulkStore, BulkTargets, BulkVisit, BulkWork,
    Throttle,
};
pub use coordination::{Coordination, CoordinationHealth, InboxCache, Remembered};
pub use doctor::{AbandonedRun, DoctorStore};
pub use event::EventLog;
pub use feed::FeedStore;
pub use inbox::InboxStore;
pub use intake::IntakeStore;
pub use limit::LimitStore;
pub use maintenance::{MaintenanceStore, RetryDelay};
pub use relay::{LogReader, RelayStore};
pub use schedule::ScheduleStore;
pub use search::SearchStore;
pub use subscription::SubscriptionStore;
pub use token::{SessionStore, TokenStore};
pub use wake::{Wake, WakeStream};
pub use worker::WorkerStore;

use crate::error::StoreError;

/// What every verb of a store returns.
pub type StoreResult<T> = Result<T, StoreError>;

/// A whole store.
pub trait Store:
    IntakeStore
    + WorkerStore
    + MaintenanceStore
    + AdminStore
    + AuditStore
    + LimitStore
    + ScheduleStore
    + BulkStore
    + BulkProgress
    + BatchStore
    + EventLog
    + RelayStore
    + SubscriptionStore
    + InboxStore
    + TokenStore
    + SessionStore
    + DoctorStore
    + FeedStore
    + SearchStore
{
}

impl<T> Store for T where
    T: IntakeStore
        + WorkerStore
        + MaintenanceStore
        + AdminStore
        + AuditStore
        + LimitStore
        + ScheduleStore
        + BulkStore
        + BulkProgress
        + BatchStore
        + EventLog
        + RelayStore
        + SubscriptionStore
        + InboxStore
        + TokenStore
        + SessionStore
        + DoctorStore
        + FeedStore
        + SearchStore
{
}
