//! The sessions of a store, as this process knows them.

use std::sync::Arc;

use milepost_core::session::{FoundUser, SessionTimes};
use milepost_core::token::Digest;

use super::cookie::Cookie;
use super::sign_in_throttle::Attempts;
use crate::access::Memory;
use crate::client::Client;
use crate::limits::in_flight::InFlight;

/// Maximum number of sign-in forms that are received from one address at the same time: nobody has shown a token yet.
const FORMS_MAX: usize = 8;

/// The sessions of a store, cached for a short time.
pub(crate) struct Sessions {
    pub(super) times: SessionTimes,
    pub(super) cookie: Cookie,
    /// The cookie with the message for the next page.
    pub(crate) said: Cookie,
    /// The cookie of a sign-in with a provider.
    pub(crate) sign_in: Cookie,
    pub(super) known: Memory<Known>,
    pub(super) attempts: Attempts,
    /// The sign-in forms that are being received, by address.
    pub(super) forms: Arc<InFlight<Client>>,
}

#[derive(Clone)]
pub(super) struct Known {
    pub(super) id: Digest,
    pub(super) user: FoundUser,
    pub(super) csrf: Arc<str>,
    /// Whether this use of the session was stored.
    pub(super) used: bool,
}

impl Known {
    /// Returns whether the user has a limited token.
    pub(super) fn is_limited(&self) -> bool {
        matches!(&self.user, FoundUser::Token(token) if token.view.scope.is_some())
    }
}

impl Sessions {
    /// `secure`: whether browsers reach the server by HTTPS.
    pub(crate) fn new(times: SessionTimes, secure: bool) -> Self {
        Self {
            times,
            cookie: Cookie::session(secure),
            said: Cookie::said(secure),
            sign_in: Cookie::sign_in(secure),
            known: Memory::default(),
            attempts: Attempts::default(),
            forms: InFlight::new(FORMS_MAX),
        }
    }
}
