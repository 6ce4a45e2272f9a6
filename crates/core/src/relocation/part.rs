//! Parts of a store (types of rows) and positions in them.

use serde::{Deserialize, Serialize};

use crate::ident::{BatchId, EventId, JobId};
use crate::named::named_enum;

named_enum! {
    /// A type of rows, named after its table. Parts are moved in the order of declaration: the states of jobs are
    /// last.
    Part {
        /// Process incarnations.
        Workers = "worker",
        /// Queues that have been paused at some time.
        Queues = "queue",
        /// Rates of kinds.
        KindLimits = "kind_limit",
        /// Slots and rates of groups.
        GroupLimits = "group_limit",
        /// Buckets of groups.
        GroupBuckets = "group_bucket",
        /// Retention periods that operators have set.
        RetentionSettings = "retention_setting",
        /// Schedules.
        Schedules = "schedule",
        /// Definitions of bulk jobs.
        BulkDefinitions = "bulk_definition",
        /// Versions of DAGs.
        DagVersions = "dag_version",
        /// DAGs and their latest versions.
        Dags = "dag",
        /// Tasks of versions.
        DagTasks = "dag_task",
        /// Audited actions of operators.
        Audit = "audit",
        /// Access tokens for servers.
        AccessTokens = "access_token",
        /// Requests of jobs.
        Jobs = "job",
        /// Keys of jobs.
        Keys = "job_key",
        /// Progress and checkpoints of jobs.
        Progress = "progress",
        /// Progress of runs of bulk jobs.
        Bulks = "bulk",
        /// Settings of bulk jobs by operators.
        BulkSettings = "bulk_setting",
        /// Targets of bulk jobs that failed.
        BulkFailures = "bulk_failure",
        /// Files whose rows are the targets of bulk jobs.
        BulkFiles = "bulk_file",
        /// Rows of such files.
        BulkTargets = "bulk_target",
        /// Runs of DAGs.
        Batches = "batch",
        /// Inputs of batches.
        BatchInputs = "batch_input",
        /// Tasks of batches and their states.
        BatchTasks = "batch_task",
        /// Ends of tasks that are still to be counted.
        BatchSpreads = "batch_spread",
        /// What tasks of batches wait for.
        BatchWaits = "batch_wait",
        /// Signals for batches.
        BatchSignals = "batch_signal",
        /// State changes of batches.
        BatchHistory = "batch_history",
        /// Aggregates and their last sequences.
        Aggregates = "aggregate",
        /// The log of events.
        Events = "event",
        /// Settings of consumers of events.
        Consumers = "inbox_consumer",
        /// Ids of events that consumers took in.
        ProcessedEvents = "processed_event",
        /// Positions of consumers in aggregates.
        Checkpoints = "aggregate_checkpoint",
        /// Events that arrived before a missing one.
        ParkedEvents = "inbox_parked",
        /// Dead letters of inboxes.
        InboxLetters = "inbox_dead",
        /// Numbers of detected duplicates.
        InboxTallies = "inbox_tally",
        /// Subscriptions and their positions.
        Subscriptions = "subscription",
        /// Parked aggregates of subscriptions.
        ParkedAggregates = "parked_aggregate",
        /// Parked events of subscriptions.
        HeldEvents = "parked_event",
        /// Dead letters of subscriptions.
        DeadEvents = "dead_event",
        /// Events that have started work.
        EventWorks = "event_work",
        /// State changes of jobs.
        History = "history",
        /// State changes that subscriptions receive. After the histories, so that their rows are not recorded anew.
        ChangeSources = "change_source",
        /// Holders of slots of groups.
        Slots = "group_slot",
        /// Ends of jobs.
        Ended = "ended",
        /// States of jobs that have not ended.
        Live = "live",
    }
}

/// The position of a row in its part: its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Before the first row.
    Start,
    /// A job.
    Job(JobId),
    /// An ascending number.
    Number(i64),
    /// A name.
    Name(String),
    /// A job's key and kind; an aggregate's type and id.
    Key(String, String),
    /// A group and a slot of it.
    Slot(String, i64),
    /// A run and a row of its file.
    Row(JobId, i64),
    /// A batch.
    Batch(BatchId),
    /// A task of a batch.
    Task(BatchId, u32),
    /// A task of a version of a DAG.
    VersionTask(i64, u32),
    /// A consumer and the id of an event it processed; a subscription and the id of a dead letter, or of an event that has started work.
    Taken(String, EventId),
    /// A consumer or a subscription, and an aggregate's type and id; a kind or a DAG, and a subscription.
    Seat(String, String, String),
    /// A subscription, an aggregate's type and id, and a position in the log.
    Held(String, String, String, i64),
}
