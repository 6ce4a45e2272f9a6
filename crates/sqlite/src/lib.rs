//! The SQLite store of Milepost.
//!
//! The store is one file, shared by any number of processes of one machine. Each process has one writer thread: it runs all waiting
//! commands in one transaction, each in a savepoint, and commits once, so that many small writes share one fsync. Reads use separate
//! connections.
//!
//! Functions that take part in a transaction of the caller are [`enqueue()`], [`enqueue_many`], [`start_batch`], [`emit`], [`emit_many`]
//! and [`complete`]; consumers of events use [`once`], [`receive`], [`next_parked`] and [`expect_from`]. [`SqliteStore::transaction`] runs
//! a closure on the writer thread, for callers without a connection. [`SqliteStore::temporary`] creates a store for a test.

mod alert;
mod audit;
mod batch;
pub mod bulk;
mod change;
mod check_rate;
mod check_statements;
mod claim;
mod clock;
mod clock_back;
mod command;
mod disk;
mod doctor;
mod due;
mod duplicate;
mod edit;
mod enqueue;
mod error;
mod event;
mod feed;
mod file;
mod file_watch;
mod finish;
mod foreign;
mod group;
mod inbox;
mod limit;
mod listener;
mod listing;
mod lock_wait;
mod migrate;
mod notifications;
mod operate;
mod options;
mod port;
mod reader;
mod relay;
mod relocation;
mod report;
mod rescue;
mod retention;
mod retention_settings;
mod rollup;
mod row;
mod schedule;
mod search;
mod served_lanes;
mod store;
mod token;
mod transitions;
mod waiting;
mod wal;
mod worker;
mod writer;

pub use batch::{signal, start_batch};
pub use enqueue::{CALL_BYTES_MAX, CALL_JOBS_MAX, enqueue, enqueue_many};
pub use event::{emit, emit_many};
pub use finish::complete;
pub use foreign::foreign_objects;
pub use inbox::{expect_from, next_parked, once, receive};
pub use migrate::plan_for_new_file;
pub use options::{BUSY_TIMEOUT_DEFAULT, SqliteOptions, Threads};
pub use store::SqliteStore;
