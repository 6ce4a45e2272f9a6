//! Whose word counts where an operator and a configuration name the same thing: the operator's.

/// What became of something that was put into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It stands as it was given.
    Stands,
    /// Nothing was changed: a configuration named what an operator had set.
    Foreign,
}

/// What became of a configuration's limits or schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// What it named before and no longer does, and what is gone therefore.
    pub removed: Vec<String>,
    /// What it names and an operator had set; that was left as it is.
    pub foreign: Vec<String>,
}
