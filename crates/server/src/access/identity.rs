//! Who asks.

use std::sync::Arc;

use milepost_core::token::{Digest, Role, TokenView};

/// Who asks, in the extensions of every request that reaches a route.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Who, for the audit: `token:NAME`, or `anonymous`.
    pub(crate) who: Arc<str>,
    pub(crate) allowed: Allowed,
    /// The prefix of the token that they have shown, or signed in with.
    pub(crate) token: Option<Arc<str>>,
    /// The id of the session in which they have signed in.
    pub(crate) session: Option<Digest>,
    /// What the forms of their session carry; empty for those who have none.
    pub(crate) csrf: Arc<str>,
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Everything: nobody is asked for a token.
    Everything,
    /// What the role of their token says.
    Role(Role),
    /// What is open to all: they were not asked, and others would be.
    Nothing,
}

impl Identity {
    /// Somebody of whom nothing is known.
    pub(crate) fn anonymous(allowed: Allowed) -> Self {
        Self { who: "anonymous".into(), allowed, token: None, session: None, csrf: "".into() }
    }

    /// The bearer of a token.
    pub(crate) fn of_token(token: &TokenView) -> Self {
        let who = format!("token:{}", token.name).into();
        Self {
            who,
            allowed: Allowed::Role(token.role),
            token: Some(token.prefix.as_str().into()),
            session: None,
            csrf: "".into(),
        }
    }

    /// Whether they may do what needs this role.
    pub(crate) fn may(&self, needed: Role) -> bool {
        match self.allowed {
            Allowed::Everything => true,
            Allowed::Role(role) => role.allows(needed),
            Allowed::Nothing => false,
        }
    }
}
