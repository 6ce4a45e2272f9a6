//! Sessions: people who have signed in at the console with a token.
//!
//! What a browser gets is random and kept as a hash, as a token is. A session ends when nobody has used it for some time, when it is as old as it
//! may get, and with its token. Its id is changed now and then; for a moment the one before counts too, since a browser asks for
//! several things at once.

use std::time::Duration;

use crate::token::{Digest, FoundToken};

/// How long sessions last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimes {
    /// One that is not used for so long is over.
    pub idle: Duration,
    /// One that is so old is over.
    pub absolute: Duration,
    /// An id that is so old is changed.
    pub rotate: Duration,
}

impl Default for SessionTimes {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        Self {
            idle: Duration::from_secs(30 * MINUTE),
            absolute: Duration::from_secs(12 * 60 * MINUTE),
            rotate: Duration::from_secs(15 * MINUTE),
        }
    }
}

/// For how long the id before the present one counts.
pub const FORMER_ID: Duration = Duration::from_secs(30);

/// A session to be begun.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// What its id hashes to.
    pub id: Digest,
    /// The prefix of the token that was signed in with.
    pub token: String,
    /// What forms carry to show that they are its own.
    pub csrf: String,
}

/// A session that goes on.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// What its present id hashes to.
    pub id: Digest,
    /// The token that was signed in with.
    pub token: FoundToken,
    /// What its forms carry.
    pub csrf: String,
    /// Whether its id is to be changed.
    pub rotate: bool,
}
