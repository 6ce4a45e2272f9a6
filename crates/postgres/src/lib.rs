//! The PostgreSQL store of Milepost, shared by any number of processes, with the database's clock.
//!
//! [`PostgresStore`] implements the ports of `milepost-core`. Operations that join a caller's transaction are functions that
//! take its connection: [`enqueue()`], [`enqueue_many`], [`emit`], [`emit_many`] and [`complete()`]; [`once`], [`receive`],
//! [`next_parked`] and [`expect_from`] for consumers of events; and the functions of [`pooled`] for transactions through a
//! transaction pooler. Callers in other languages use the SQL functions of schema `milepost` (`sql/api.sql`), which this
//! crate uses too.

mod admin;
mod alert;
mod audit;
mod batch;
pub mod bulk;
mod check_statements;
mod claim;
mod claim_lanes;
mod clock;
mod complete;
mod connect;
mod connection_reuse;
mod doctor;
mod enqueue;
mod error;
mod event;
mod feed;
mod finish;
mod foreign;
mod group;
mod held_runs;
mod inbox;
mod limit;
mod lock_wait;
mod migrate;
mod migrations;
pub mod pooled;
mod prune_position;
mod relay;
mod relocation;
mod rescue;
mod retention;
mod retention_settings;
mod rollup;
mod row;
mod schedule;
mod search;
mod session;
mod store;
mod token;
mod verbs;
mod wake;
mod worker;

pub use batch::{signal, start_batch};
pub use complete::complete;
pub use connect::{PATIENCE_OF_QUESTIONS, PostgresOptions, WakeMode, check_url};
pub use enqueue::{enqueue, enqueue_many};
pub use event::{emit, emit_many};
pub use inbox::{expect_from, next_parked, once, receive};
pub use store::PostgresStore;
