//! How a store's connections are used.

/// Connections of one sort at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// What they are for.
    pub name: &'static str,
    /// How many are used now.
    pub in_use: u32,
    /// How many are open and not used.
    pub idle: u32,
    /// How many may be open.
    pub max: u32,
    /// How many times all were in use, so that one had to be waited for.
    pub waits: u64,
}
