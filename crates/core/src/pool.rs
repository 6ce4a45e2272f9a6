//! Usage of a store's connection pools.

/// The state of one pool of connections at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// The purpose of the connections.
    pub name: &'static str,
    /// The number of connections in use.
    pub in_use: u32,
    /// The number of open connections that are not in use.
    pub idle: u32,
    /// The maximum number of open connections.
    pub max: u32,
    /// How many times a caller had to wait because all connections were in use.
    pub waits: u64,
}
