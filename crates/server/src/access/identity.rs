//! The identity of the caller.

use std::sync::Arc;

use milepost_core::oidc::Person;
use milepost_core::token::{Digest, Role, TokenView};

use crate::scoped::LimitedToken;

/// The identity of the caller, in the extensions of every request that reaches a route.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The name in the audit log: `token:NAME`, `oidc:NAME`, or `anonymous`.
    pub(crate) who: Arc<str>,
    pub(crate) allowed: Allowed,
    /// The prefix of the token of the request, or of the token that the session was opened with.
    pub(crate) token: Option<Arc<str>>,
    /// The limits of that token, if it has some.
    pub(crate) limited: Option<Arc<LimitedToken>>,
    /// The id of the session, if the caller has signed in.
    pub(crate) session: Option<Digest>,
    /// The CSRF token of the session; empty without a session.
    pub(crate) csrf: Arc<str>,
}

/// The permissions of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Everything: the server does not need tokens.
    Everything,
    /// The permissions of the token's role.
    Role(Role),
    /// Only public routes: the route needs no token, although other routes do.
    Nothing,
}

impl Identity {
    /// Creates the identity of an unidentified caller.
    pub(crate) fn anonymous(allowed: Allowed) -> Self {
        Self { who: "anonymous".into(), allowed, token: None, limited: None, session: None, csrf: "".into() }
    }

    /// Creates the identity of a caller with this token.
    pub(crate) fn of_token(token: &TokenView) -> Self {
        let who: Arc<str> = format!("token:{}", token.name).into();
        let limited = LimitedToken::of(token, &who).map(Arc::new);
        Self {
            who,
            allowed: Allowed::Role(token.role),
            token: Some(token.prefix.as_str().into()),
            limited,
            session: None,
            csrf: "".into(),
        }
    }

    /// Creates the identity of a person whom the provider identified.
    pub(crate) fn of_person(person: &Person) -> Self {
        let (who, allowed) = (person.who().into(), Allowed::Role(person.role));
        Self { who, allowed, token: None, limited: None, session: None, csrf: "".into() }
    }

    /// Returns whether the caller has shown a token, or has signed in.
    pub(crate) const fn is_known(&self) -> bool {
        matches!(self.allowed, Allowed::Role(_))
    }

    /// Returns the name without its prefix, if the caller is known.
    pub(crate) fn name(&self) -> Option<&str> {
        let (_, name) = self.who.split_once(':').filter(|_| self.is_known())?;
        Some(name)
    }

    /// Returns whether the caller may use a route that needs this role.
    pub(crate) fn may(&self, needed: Role) -> bool {
        match self.allowed {
            Allowed::Everything => true,
            Allowed::Role(role) => role.allows(needed),
            Allowed::Nothing => false,
        }
    }
}
