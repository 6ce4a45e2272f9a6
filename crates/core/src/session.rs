//! Console sessions, of users who signed in with a token or with an account of an OpenID Connect provider.
//!
//! The session id is random and stored as a hash, like a token. A session expires when it is not used for the idle time, when it reaches
//! its maximum age, with its token, or when the configuration no longer grants the person's role. Its id is rotated periodically. The
//! previous id stays valid for a short time because a browser sends several requests at the same time.

use std::time::Duration;

use jiff::Timestamp;

use crate::oidc::Person;
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

/// The user of a session to be created.
#[derive(Clone, Debug)]
pub enum SessionUser {
    /// The holder of the token with this prefix.
    Token(String),
    /// A person whom the provider identified.
    Person(Person),
}

/// A session to be created.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The hash of its id.
    pub id: Digest,
    /// Its user.
    pub user: SessionUser,
    /// The CSRF token that the session's forms contain.
    pub csrf: String,
}

/// The user of a valid session.
#[derive(Clone, Debug)]
pub enum FoundUser {
    /// The holder of this token, valid or not.
    Token(Box<FoundToken>),
    /// A person whom the provider identified. Whether the configuration still grants the role is not checked.
    Person(Person),
}

/// A valid session.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// The hash of its current id.
    pub id: Digest,
    /// Its user.
    pub user: FoundUser,
    /// The CSRF token that its forms contain.
    pub csrf: String,
    /// Whether its id must be rotated.
    pub rotate: bool,
}

/// Limits of sign-ins with a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignInLimits {
    /// How long a sign-in may take.
    pub lasts: Duration,
    /// The maximum number in progress. The oldest are deleted when there are more, because clients without an identity begin them.
    pub in_progress_max: u32,
}

impl Default for SignInLimits {
    fn default() -> Self {
        Self { lasts: Duration::from_secs(10 * 60), in_progress_max: 10_000 }
    }
}

/// A sign-in with a provider that begins: the browser is sent to the provider.
#[derive(Clone)]
pub struct NewSignIn {
    /// The hash of the secret in the browser's cookie.
    pub id: Digest,
    /// The hash of the state that the provider returns.
    pub state: Digest,
    /// The nonce that the ID token must contain.
    pub nonce: String,
    /// The PKCE verifier.
    pub verifier: String,
    /// The path to go to afterwards.
    pub next: String,
}

// Nonce and verifier are secret until the sign-in has ended.
impl std::fmt::Debug for NewSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSignIn").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A sign-in to which the provider sent the browser back. It was deleted, so that it cannot be used again.
#[derive(Clone)]
pub struct ReturnedSignIn {
    /// The nonce that the ID token must contain.
    pub nonce: String,
    /// The PKCE verifier.
    pub verifier: String,
    /// The path to go to.
    pub next: String,
    /// The time on the store's clock.
    pub at: Timestamp,
}

impl std::fmt::Debug for ReturnedSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReturnedSignIn").field("next", &self.next).finish_non_exhaustive()
    }
}
