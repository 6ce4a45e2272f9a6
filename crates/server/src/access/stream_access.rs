//! The lifetime of a stream: as long as its credentials are valid.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::session::FoundUser;
use milepost_core::token::Digest;
use tokio::time::{Instant, sleep};

use super::Identity;
use crate::app::App;
use crate::problem::Code;
use crate::session;
use crate::store_timeout::in_time;

/// Interval of the check of the credentials. Well within the time for which the previous id of a session is still accepted.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Maximum duration of a stream with credentials. The client then reconnects and authenticates again.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// The credentials that a stream was opened with.
pub(crate) struct OpenCredentials {
    app: App,
    by: By,
}

enum By {
    /// None, because the server needed no tokens.
    Nothing,
    /// The token with this prefix.
    Token(Arc<str>),
    /// The session with this id, which is rotated.
    Session(Digest),
}

/// The reason why a stream must end.
#[derive(Debug)]
pub(crate) struct Over {
    /// The code, as in the error response to a request.
    pub(crate) reason: Code,
    /// The description.
    pub(crate) words: String,
}

impl Over {
    fn new(reason: Code, words: impl Into<String>) -> Self {
        Self { reason, words: words.into() }
    }
}

impl OpenCredentials {
    pub(crate) fn of(app: App, identity: &Identity) -> Self {
        let by = match (identity.session, &identity.token) {
            (Some(id), _) => By::Session(id),
            (None, Some(prefix)) => By::Token(Arc::clone(prefix)),
            (None, None) => By::Nothing,
        };
        Self { app, by }
    }

    /// Waits until the credentials are no longer valid, or a stream with credentials has lasted for [`LASTS`]. Errors of the store are
    /// ignored. A check does not count as use of the session.
    pub(crate) async fn over(mut self) -> Over {
        let began = Instant::now();
        loop {
            sleep(LOOK_EVERY).await;
            match self.why_invalid().await {
                Ok(Some(over)) => return over,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(
                        error = error.chain(),
                        "the credentials of a stream could not be checked"
                    );
                }
            }
            if began.elapsed() >= LASTS && !matches!(self.by, By::Nothing) {
                return Over::new(Code::LastedAnHour, "a stream lasts an hour; reconnect with the last id");
            }
        }
    }

    /// Returns why the credentials are no longer valid, if so.
    pub(crate) async fn why_invalid(&mut self) -> Result<Option<Over>, StoreError> {
        let user = match &mut self.by {
            By::Nothing => {
                let asked = self.app.tokens.are_asked_for().await?;
                return Ok(asked.then(|| Over::new(Code::NoToken, "the server needs a token now")));
            }
            By::Token(prefix) => {
                let found = in_time(self.app.store.token(prefix)).await?;
                let found = found.map(|found| FoundUser::Token(Box::new(found)));
                found.ok_or_else(|| Over::new(Code::UnknownToken, "the token no longer exists"))
            }
            By::Session(id) => match session::look(&self.app, id).await? {
                Some(found) => {
                    *id = found.id;
                    Ok(found.user)
                }
                None => Err(Over::new(Code::SessionOver, "the session has ended; sign in again")),
            },
        };
        let counts = user.and_then(|user| {
            session::check_user(&self.app, &user)
                .map_err(|refused| Over::new(refused.code(), refused.words()))
        });
        Ok(counts.err())
    }
}
