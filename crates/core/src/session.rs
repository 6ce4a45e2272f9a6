//! Console sessions of users who signed in with a token.
//!
//! The session id is random and stored as a hash, like a token. A session expires when it is not used for the idle time, when it reaches
//! its maximum age, or with its token. Its id is rotated periodically. The previous id stays valid for a short time because a browser sends
//! several requests at the same time.

use std::time::Duration;

use crate::token::{Digest, FoundToken};

/// Time limits of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimes {
    /// A session that is not used for this long expires.
    pub idle: Duration,
    /// A session of this age expires.
    pub absolute: Duration,
    /// An id of this age is rotated.
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

/// How long the previous id stays valid after a rotation.
pub const FORMER_ID: Duration = Duration::from_secs(30);

/// A session to be created.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The hash of its id.
    pub id: Digest,
    /// The prefix of the token used to sign in.
    pub token: String,
    /// The CSRF token that the session's forms contain.
    pub csrf: String,
}

/// A valid session.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// The hash of its current id.
    pub id: Digest,
    /// The token used to sign in.
    pub token: FoundToken,
    /// The CSRF token that its forms contain.
    pub csrf: String,
    /// Whether its id must be rotated.
    pub rotate: bool,
}
