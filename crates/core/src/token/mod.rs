//! Access tokens and the roles that they grant on a server.
//!
//! A token is a [`Secret`] that is shown once. A store keeps its prefix, by which it is found and named, and a hash. The hash is
//! one round of SHA-256 rather than a password hash: 256 random bits cannot be guessed at any speed, and every request pays for
//! the check.

mod role;
mod scope;
mod secret;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::job::check_name;
use crate::job::error::InvalidJob;

pub use role::Role;
pub use scope::{InvalidScope, OutsideScope, PATTERNS_MAX, TokenScope};
pub use secret::{Digest, RANDOM_BYTES, Secret};

/// The maximum length of a token's name, in bytes.
pub const TOKEN_NAME_BYTES_MAX: usize = 100;

/// A token to be stored.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name, unique among tokens that are not revoked. Actions with the token are recorded in the audit under this name.
    pub name: String,
    /// The role that it grants.
    pub role: Role,
    /// The queues and kinds that it is limited to; `None`: all of them.
    pub scope: Option<TokenScope>,
    /// The public part of the token.
    pub prefix: String,
    /// The hash of its secret.
    pub hash: Digest,
    /// The name of its creator.
    pub created_by: String,
    /// The time before which it is not valid; `None`: valid from now on.
    pub starts_at: Option<Timestamp>,
    /// How long it is valid from its start; `None`: until it is revoked.
    pub lasts: Option<Duration>,
}

impl NewToken {
    /// Creates a token with this secret, valid from now on until it is revoked.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role, secret: &Secret, created_by: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role,
            scope: None,
            prefix: secret.prefix().to_owned(),
            hash: secret.hash(),
            created_by: created_by.into(),
            starts_at: None,
            lasts: None,
        }
    }

    /// Checks the name and the period of validity.
    ///
    /// # Errors
    /// [`InvalidToken`] with the reason.
    pub fn check(&self) -> Result<(), InvalidToken> {
        check_name("name of the token", &self.name, TOKEN_NAME_BYTES_MAX).map_err(InvalidToken::Name)?;
        if self.lasts == Some(Duration::ZERO) {
            return Err(InvalidToken::NeverValid);
        }
        self.scope.as_ref().map_or(Ok(()), TokenScope::check)?;
        Ok(())
    }

    /// Returns the hash that a store keeps. That of a limited token is another one than that of its secret, so that earlier releases, which
    /// do not read scopes, refuse it as unknown.
    #[must_use]
    pub fn stored_hash(&self) -> Digest {
        stored_hash(self.hash, self.scope.as_ref())
    }
}

/// Returns the hash of a secret as stored for a token with this scope.
fn stored_hash(hash: Digest, scope: Option<&TokenScope>) -> Digest {
    if scope.is_some() { hash.again() } else { hash }
}

/// A token as shown to operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenView {
    /// The public part of the token.
    pub prefix: String,
    /// Its name.
    pub name: String,
    /// The role that it grants.
    pub role: Role,
    /// The queues and kinds that it is limited to; `None`: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<TokenScope>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The name of its creator.
    pub created_by: String,
    /// The time before which it is not valid.
    pub starts_at: Timestamp,
    /// The time from which on it is not valid any more.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl TokenView {
    /// Returns its status at this time, by the clock of its store.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing {
        if self.revoked_at.is_some() {
            Standing::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            Standing::Expired
        } else if self.starts_at > now {
            Standing::NotYet
        } else {
            Standing::Valid
        }
    }
}

/// The status of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is valid.
    Valid,
    /// It is not valid yet.
    NotYet,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
}

/// A token found by its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundToken {
    /// Its public properties.
    pub view: TokenView,
    /// The [stored hash](NewToken::stored_hash) of its secret.
    pub hash: Digest,
    /// The time of the lookup, by the store's clock.
    pub at: Timestamp,
}

impl FoundToken {
    /// Returns its status at the time of the lookup.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.view.standing(self.at)
    }

    /// Returns whether it is the token with this secret.
    #[must_use]
    pub fn is_of(&self, secret: &Secret) -> bool {
        self.hash == stored_hash(secret.hash(), self.view.scope.as_ref())
    }
}

/// An invalid token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// A name that is empty, too long or contains control or bidirectional formatting characters.
    #[error("{0}")]
    Name(InvalidJob),
    /// Another token has this name.
    #[error("there is already a token {0:?}; revoke it first, or use another name")]
    NameTaken(String),
    /// Its period of validity is empty.
    #[error("it would never be valid; it must last longer than 0 s")]
    NeverValid,
    /// Its scope is invalid.
    #[error("{0}")]
    Scope(#[from] InvalidScope),
    /// No token has this prefix.
    #[error("there is no token with prefix {0:?}; `milepost tokens list` shows the prefixes")]
    NoSuchToken(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn view() -> TokenView {
        TokenView {
            prefix: "abcdefgh".to_owned(),
            name: "ci".to_owned(),
            role: Role::Viewer,
            scope: None,
            created_at: at(0),
            created_by: "ada@host".to_owned(),
            starts_at: at(10),
            expires_at: Some(at(20)),
            revoked_at: None,
            last_used_at: None,
        }
    }

    #[test]
    fn a_token_is_valid_from_its_start_until_just_before_its_end() {
        let token = view();
        let standings =
            [(9, Standing::NotYet), (10, Standing::Valid), (19, Standing::Valid), (20, Standing::Expired)];
        for (second, standing) in standings {
            assert_eq!(token.standing(at(second)), standing, "{second}");
        }
        let revoked = TokenView { revoked_at: Some(at(5)), ..token };
        assert_eq!(revoked.standing(at(15)), Standing::Revoked);
    }

    #[test]
    fn a_token_that_cannot_be_is_refused() {
        let secret = Secret::of_random(&[7; RANDOM_BYTES]);
        let token = |name: &str| NewToken::new(name, Role::Admin, &secret, "ada");
        assert_eq!(token("ci").check(), Ok(()));
        assert!(matches!(token("").check(), Err(InvalidToken::Name(_))));
        assert!(matches!(token("a\nb").check(), Err(InvalidToken::Name(_))));
        let never = NewToken { lasts: Some(Duration::ZERO), ..token("ci") };
        assert_eq!(never.check(), Err(InvalidToken::NeverValid));
        let unlimited = NewToken { scope: Some(TokenScope::default()), ..token("ci") };
        assert_eq!(unlimited.check(), Err(InvalidToken::Scope(InvalidScope::Empty)));
    }

    #[test]
    fn earlier_releases_do_not_find_a_limited_token() {
        let secret = Secret::of_random(&[7; RANDOM_BYTES]);
        let scope = Some(TokenScope { queues: vec!["mail".to_owned()], kinds: Vec::new() });
        for scope in [None, scope] {
            let is_limited = scope.is_some();
            let new = NewToken { scope: scope.clone(), ..NewToken::new("ci", Role::Viewer, &secret, "ada") };
            assert_eq!(new.stored_hash() == secret.hash(), !is_limited, "earlier releases compare these");
            let found =
                FoundToken { view: TokenView { scope, ..view() }, hash: new.stored_hash(), at: at(0) };
            assert!(found.is_of(&secret) && !found.is_of(&Secret::of_random(&[8; RANDOM_BYTES])));
        }
    }
}
