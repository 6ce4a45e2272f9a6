//! A problem of a store, or something in progress, as `milepost status` and the API show it.

use serde::Serialize;
use utoipa::ToSchema;

/// How urgent an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// An operator must act.
    Error,
    /// An operator should know it.
    Warning,
    /// Not a problem: something that runs for long.
    Running,
}

/// A problem, or something in progress.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StatusEntry {
    /// How urgent it is.
    pub urgency: Urgency,
    /// The identity of a problem: its rule and its subject, such as `queue_paused: mail`. Null for something in progress.
    pub alert: Option<String>,
    /// A few words that name it.
    pub title: String,
    /// The cause and the consequences.
    pub words: String,
    /// The command that shows more.
    pub command: String,
}
