//! Store ports: the interfaces that the runtime, operators' tools and callers need, one per consumer.
//!
//! Functions that join a caller's transaction are not part of the ports. They are inherent functions of each store
//! crate that take the caller's transaction, so that the caller controls the commit.

mod admin;
mod alert;
mod audit;
mod batch;
mod bulk;
mod coordination;
mod doctor;
mod edit;
mod event;
mod feed;
mod inbox;
mod intake;
mod limit;
mod maintenance;
mod relay;
mod retention;
mod rollup;
mod schedule;
mod search;
mod subscription;
mod token;
mod wake;
mod worker;

pub use admin::{AdminStore, Operated, Operation};
pub use alert::AlertStore;
pub use audit::AuditStore;
pub use batch::BatchStore;
pub use bulk::{BulkProgress, BulkRun, BulkStaging, BulkStore, BulkTargets, BulkVisit, BulkWork, Throttle};
pub use coordination::{Coordination, CoordinationHealth, InboxCache, Remembered};
pub use doctor::{AbandonedRun, DoctorStore};
pub use edit::JobEdit;
pub use event::EventLog;
pub use feed::FeedStore;
pub use inbox::InboxStore;
pub use intake::{IntakeStore, check_together};
pub use limit::LimitStore;
pub use maintenance::{MaintenanceStore, RetryDelay};
pub use relay::{LogReader, RelayStore};
pub use retention::RetentionStore;
pub use rollup::RollupStore;
pub use schedule::{ScheduleStore, check_kind_of_ticks};
pub use search::SearchStore;
pub use subscription::{PARKED_CHANGED_MAX, SubscriptionStore};
pub use token::{SessionStore, TokenStore};
pub use wake::{Wake, WakeStream};
pub use worker::WorkerStore;

use crate::error::StoreError;

/// The result of every store method.
pub type StoreResult<T> = Result<T, StoreError>;

/// A complete store.
pub trait Store:
    IntakeStore
    + WorkerStore
    + MaintenanceStore
    + AdminStore
    + AlertStore
    + AuditStore
    + LimitStore
    + RetentionStore
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
    + RollupStore
    + SearchStore
{
}

impl<T> Store for T where
    T: IntakeStore
        + WorkerStore
        + MaintenanceStore
        + AdminStore
        + AlertStore
        + AuditStore
        + LimitStore
        + RetentionStore
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
        + RollupStore
        + RollupStore
        + SearchStore
{
}
