//! For how long somebody may listen: as long as what they came with counts.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::token::Digest;
use tokio::time::{Instant, sleep};

use super::{Identity, check};
use crate::app::App;
use crate::patience::in_time;
use crate::session;

/// How often the store is asked whether it still counts. Well within the time for which the id before the present one of a session does.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long somebody who is known may listen at once. A reader comes back, and shows again who it is.
const LASTS: Duration = Duration::from_secs(60 * 60);

/// What somebody who listens came with.
pub(crate) struct Lasting {
    app: App,
    by: By,
}

enum By {
    /// Nothing, since nobody was asked for anything.
    Nothing,
    /// The token with this prefix.
    Token(Arc<str>),
    /// The session with this id, which changes.
    Session(Digest),
}

/// Why somebody may not listen any more.
#[derive(Debug)]
pub(crate) struct Over {
    /// In a word, as requests are refused with it.
    pub(crate) reason: &'static str,
    /// In a sentence.
    pub(crate) words: String,
}

impl Over {
    fn new(reason: &'static str, words: impl Into<String>) -> Self {
        Self { reason, words: words.into() }
    }
}

impl Lasting {
    pub(crate) fn of(app: App, identity: &Identity) -> Self {
        let by = match (identity.session, &identity.token) {
            (Some(id), _) => By::Session(id),
            (None, Some(prefix)) => By::Token(Arc::clone(prefix)),
            (None, None) => By::Nothing,
        };
        Self { app, by }
    }

    /// Waits until it does not count. A store that does not answer says nothing; to look is not to use a session.
    pub(crate) async fn over(mut self) -> Over {
        let began = Instant::now();
        loop {
            sleep(LOOK_EVERY).await;
            match self.look().await {
                Ok(Some(over)) => return over,
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(error = error.chain(), "whether a stream may go on is not known");
                }
            }
            if began.elapsed() >= LASTS && !matches!(self.by, By::Nothing) {
                return Over::new("lasted_an_hour", "a stream lasts an hour; come back with the last id");
            }
        }
    }

    async fn look(&mut self) -> Result<Option<Over>, StoreError> {
        let token = match &mut self.by {
            By::Nothing => {
                let asked = self.app.tokens.are_asked_for().await?;
                return Ok(asked.then(|| Over::new("no_token", "a token is asked for now")));
            }
            By::Token(prefix) => {
                let found = in_time(self.app.store.token(prefix)).await?;
                found.ok_or_else(|| Over::new("unknown_token", "this store has no such token any more"))
            }
            By::Session(id) => match session::look(&self.app, id).await? {
                Some(found) => {
                    *id = found.id;
                    Ok(found.token)
                }
                None => Err(Over::new("session_over", "nobody is signed in here any more; sign in again")),
            },
        };
        let counts = token
            .and_then(|token| check(&token).map_err(|refused| Over::new(refused.code(), refused.words())));
        Ok(counts.err())
    }
}
