//! Actions on batches and their tasks.

use super::{Input, actions};

actions! {
    /// An operation on a batch.
    #[cfg_attr(feature = "openapi", schema(as = BatchOperationName))]
    BatchAction {
        Abort = "abort" {
            title: "Abort",
            summary: "Stop a batch so that it can be resumed; no further task starts",
            effect: "No further task starts until the batch is resumed. Completed work is kept.",
            is_destructive: true,
            inputs: &[Input::Grace],
        }
        Resume = "resume" {
            title: "Resume",
            summary: "Resume an aborted batch",
            effect: "Aborted tasks continue from their checkpoints, and waiting tasks start when their predecessors end. Failed tasks stay \
                     failed until they are rerun.",
        }
        Cancel = "cancel" {
            title: "Cancel",
            summary: "Permanently cancel a batch, or a task and its successors",
            effect: "Tasks that have not ended are canceled: all of the batch, or the given task and its successors. Tasks with the rule \
                     `always` still run, and so do tasks that only they lead to.",
            is_destructive: true,
            inputs: &[Input::Grace],
        }
        Mark = "mark" {
            title: "Mark as done",
            summary: "Set the outcome of a task that was handled manually",
            effect: "Downstream tasks continue as if the task had ended with this outcome.",
            is_destructive: true,
        }
        Rerun = "rerun" {
            title: "Rerun",
            summary: "Run tasks of a batch again, after a preview",
            effect: "The tasks run again in a new generation. Each task is evaluated again when its predecessors have ended.",
        }
    }
}

actions! {
    /// An action that makes a batch.
    NewBatchAction {
        Start = "start" {
            title: "Start",
            summary: "Start a batch of a DAG",
            effect: "A batch of the latest version of the DAG starts.",
        }
    }
}

actions! {
    /// An action on a wait of a batch.
    WaitAction {
        Signal = "signal" {
            title: "Send signal",
            summary: "Send a signal to a batch, for the task that waits for it",
            effect: "The task that waits for the signal succeeds. The payload of the signal is its output, which later tasks can read.",
        }
    }
}
