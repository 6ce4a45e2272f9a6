//! Precedence of operators over configuration files when both set the same limit or schedule.

/// The result of storing a limit or a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The value was stored.
    Stands,
    /// Nothing was changed: a configuration names an object that an operator has set.
    Foreign,
}

/// The result of applying a configuration's limits or schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The names that the configuration no longer contains and that were therefore removed.
    pub removed: Vec<String>,
    /// The names that an operator has set; these were left unchanged.
    pub foreign: Vec<String>,
}
