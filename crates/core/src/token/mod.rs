//! Access tokens: who may ask a server for what.
//!
//! A token is a [`Secret`], shown once. A store keeps its prefix, by which it is found and named, and a hash. That is one round of
//! SHA-256 and no password hash: 256 random bits cannot be guessed however fast guessing is, and each request pays for checking.

mod role;
mod secret;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::error::InvalidJob;
use crate::job::check_name;

pub use role::Role;
pub use secret::{Digest, RANDOM_BYTES, Secret};

/// How long the name of a token may be, in bytes.
pub const TOKEN_NAME_BYTES_MAX: usize = 100;

/// A token to be kept.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name, which no other token has that is not revoked. What it is used for is noted under this name.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The part of it that is no secret.
    pub prefix: String,
    /// What its secret hashes to.
    pub hash: Digest,
    /// Who made it.
    pub created_by: String,
    /// Before when it is not valid; `None`: from now on.
    pub starts_at: Option<Timestamp>,
    /// For how long from its start it is valid; `None`: until it is revoked.
    pub lasts: Option<Duration>,
}

impl NewToken {
    /// A token of this secret, valid from now on until it is revoked.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role, secret: &Secret, created_by: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role,
            prefix: secret.prefix().to_owned(),
            hash: secret.hash(),
            created_by: created_by.into(),
            starts_at: None,
            lasts: None,
        }
    }

    /// Checks all there is to check.
    ///
    /// # Errors
    /// [`InvalidToken`] says what is wrong.
    pub fn check(&self) -> Result<(), InvalidToken> {
        check_name("name of the token", &self.name, TOKEN_NAME_BYTES_MAX).map_err(InvalidToken::Name)?;
        if self.lasts == Some(Duration::ZERO) {
            return Err(InvalidToken::NeverValid);
        }
        Ok(())
    }
}

/// A token as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenView {
    /// The part of it that is no secret.
    pub prefix: String,
    /// Its name.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// Before when it is not valid.
    pub starts_at: Timestamp,
    /// From when on it is not valid any more.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl TokenView {
    /// Whether it can be used at this time, on the clock of its store.
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

/// Whether a token can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It can.
    Valid,
    /// Its time has not come.
    NotYet,
    /// Its time is over.
    Expired,
    /// Somebody took it back.
    Revoked,
}

/// A token that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundToken {
    /// What is known of it.
    pub view: TokenView,
    /// What its secret hashes to.
    pub hash: Digest,
    /// The time of the answer, on the store's clock.
    pub at: Timestamp,
}

impl FoundToken {
    /// Whether it could be used when it was looked for.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.view.standing(self.at)
    }
}

/// A token that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// A name that is empty, too long or has control characters.
    #[error("{0}")]
    Name(InvalidJob),
    /// Another token has the name.
    #[error("there is a token {0:?} already; revoke that first, or give this one another name")]
    NameTaken(String),
    /// It would expire as soon as it starts.
    #[error("it would never be valid; let it last for longer than nothing")]
    NeverValid,
    /// Not exactly one token is meant.
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
    }
}
