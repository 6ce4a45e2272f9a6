//! The SQLite store of Milepost.
//!
//! One file, any number of processes of one machine. Each process has one thread that writes: it takes the
//! commands that wait, runs each in a savepoint of one transaction and commits once, so that many small
//! writes share one fsync. Reads have connections of their own.
//!
//! What joins a transaction of the caller is a function that takes it: [`enqueue()`], [`enqueue_many`], [`start_batch`],
//! [`emit`], [`emit_many`] and [`complete`]; [`once`], [`receive`], [`next_parked`] and [`expect_from`] for consumers of events.
//! [`SqliteStore::transaction`] runs a closure on the writer thread, for callers that have no connection.
//! [`SqliteStore::temporary`] makes a store for a test.

mod audit;
mod batch;
mod bell;
pub mod bulk;
mod change;
mod claim;
mod clock;
mod command;
mod departure;
mod disk;
mod doctor;
mod due;
mod enqueue;
mod event;
mod failure;
mod feed;
mod file;
mod finish;
mod foreign;
mod group;
mod inbox;
mod limit;
mod listing;
mod log;
mod lookout;
mod migration;
mod operate;
mod options;
mod pace;
mod page;
mod port;
mod query;
mod reader;
mod relay;
mod report;
mod rescue;
mod retention;
mod row;
mod schedule;
mod search;
mod served;
mod stand;
mod store;
mod token;
mod waiting;
mod worker;
mod writer;

pub use batch::start_batch;
pub use enqueue::{CALL_BYTES_MAX, CALL_JOBS_MAX, enqueue, enqueue_many};
pub use event::{emit, emit_many};
pub use finish::complete;
pub use foreign::foreign_objects;
pub use inbox::{expect_from, next_parked, once, receive};
pub use options::{BUSY_TIMEOUT_DEFAULT, SqliteOptions};
pub use store::SqliteStore;
