//! Milepost runs work that must not be lost on the database you already have.
//!
//! Describe a job by the type of its payload, enqueue it in your own transaction, and run it in a
//! [`Worker`]:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use milepost::{Context, Job, JobError, Worker};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Greet {
//!     name: String,
//! }
//!
//! impl Job for Greet {
//!     const KIND: &'static str = "greet";
//! }
//!
//! async fn greet(job: Greet, _context: Context) -> Result<(), JobError> {
//!     println!("Hello {}", job.name);
//!     Ok(())
//! }
//!
//! # async fn run(store: Arc<dyn milepost::Store>) -> Result<(), Box<dyn std::error::Error>> {
//! let worker = Worker::builder(store.clone()).handle(greet).start().await?;
//! store.enqueue_many(&[Greet { name: "Ada".into() }.to_job()?]).await?;
//! worker.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! What is promised, and what each setting gives up, stands in `docs/GUARANTEES.md`.

mod attempt;
mod claimer;
mod completer;
mod context;
mod coordinator;
mod executor;
mod flight;
mod handler;
mod heartbeat;
mod incarnation;
mod journal;
mod maintenance;
mod reporter;
mod retention;
mod stats;
pub mod testing;
mod ticker;
mod worker;

pub use context::Context;
pub use handler::{Handler, IntoOutcome, Job, JobError, KindOptions, Outcome};
pub use milepost_core::claim::ClaimedJob;
pub use milepost_core::error::{InvalidJob, StoreError};
pub use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
pub use milepost_core::job::{Enqueued, NewJob, Priority, StartAt};
pub use milepost_core::port::{
    Coordination, CoordinationHealth, Put, ScheduleStore, Store, StoreResult, Synced,
};
pub use milepost_core::retention::{Keep, RetentionPolicy};
pub use milepost_core::retry::RetryPolicy;
pub use milepost_core::schedule::{InvalidSchedule, Misfire, Schedule, ScheduleView, Source, Spec};
pub use stats::StatsView;
pub use worker::{Worker, WorkerBuilder, WorkerOptions};
