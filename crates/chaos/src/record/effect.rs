//! What the witness saw: effects outside of the store, which no fault touches.

use serde::{Deserialize, Serialize};

/// One effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// A handler began a run.
    Began {
        /// The job.
        job: String,
        /// The run token.
        token: u64,
        /// When, by the clock of the machine.
        at_ms: i64,
    },
    /// A handler ended a run. Missing if its process was killed.
    Finished {
        /// The job.
        job: String,
        /// The run token.
        token: u64,
        /// When, by the clock of the machine.
        at_ms: i64,
    },
    /// A run of a bulk job began a chunk.
    Chunk {
        /// The run.
        run: String,
        /// When, by the clock of the machine.
        at_ms: i64,
    },
    /// A run of a bulk job applied a target.
    Target {
        /// The run.
        run: String,
        /// The key of the target.
        key: String,
    },
    /// A sink has received an event.
    Delivered {
        /// The subscription.
        subscription: String,
        /// The event.
        event: String,
    },
    /// A consumer has taken an event in, in the transaction of its effect.
    Consumed {
        /// The consumer.
        consumer: String,
        /// The event.
        event: String,
        /// Whether the consumer takes the events of an aggregate in their order.
        in_order: bool,
    },
    /// A watcher of the stream has received a change of a job.
    Watched {
        /// The watcher.
        watcher: String,
        /// The position of the change in the store's log.
        pos: i64,
    },
    /// A watcher of the stream was told to read the current state.
    Reset {
        /// The watcher.
        watcher: String,
    },
    /// The server has lost its last commits, and the new one has committed nothing yet.
    CommitsLost {
        /// The number of the loss.
        loss: u32,
    },
}
