//! What the store says of tokens, remembered for a moment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;
use jiff::SignedDuration;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::token::{FoundToken, Secret, Standing};

use super::{FRESH, Memory, Recalled};
use crate::patience::in_time;
use crate::problem::Problem;

/// How old the note of a token's last use may be.
const USED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The tokens of a store.
pub(crate) struct Tokens {
    store: Arc<dyn Store>,
    /// Whether they are asked for in any case.
    required: bool,
    /// Whether the store has any, and when it said so.
    asked: Mutex<Option<(Instant, bool)>>,
    /// Tokens that were shown.
    known: Memory<FoundToken>,
    /// The digests of all tokens, and when they were read: for when strangers ask too often.
    listed: tokio::sync::Mutex<Option<(Instant, HashSet<[u8; 32]>)>>,
}

impl Tokens {
    pub(crate) fn new(store: Arc<dyn Store>, required: bool) -> Self {
        Self {
            store,
            required,
            asked: Mutex::default(),
            known: Memory::default(),
            listed: tokio::sync::Mutex::default(),
        }
    }

    /// Whether everybody is asked for a token. A store that does not answer is believed to be as it was when it did.
    pub(crate) async fn are_asked_for(&self) -> Result<bool, StoreError> {
        if self.required {
            return Ok(true);
        }
        let known = *lock(&self.asked);
        if let Some((_, asked)) = known.filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(asked);
        }
        match (in_time(self.store.has_tokens()).await, known) {
            (Ok(asked), _) => {
                *lock(&self.asked) = Some((Instant::now(), asked));
                Ok(asked)
            }
            (Err(error), Some((_, asked))) if error.is_transient() => Ok(asked),
            (Err(error), _) => Err(error),
        }
    }

    /// What is remembered of a token.
    pub(crate) fn recall(&self, secret: &Secret) -> Recalled<FoundToken> {
        self.known.recall(&secret.hash())
    }

    /// Whether the store has this token. All are read at a time, and once a second at most, however many ask.
    pub(crate) async fn is_listed(&self, secret: &Secret) -> Result<bool, StoreError> {
        let mut listed = self.listed.lock().await;
        let digests = match listed.take().filter(|(at, _)| at.elapsed() < FRESH) {
            Some(fresh) => fresh,
            None => {
                let tokens = in_time(self.store.tokens()).await?;
                (Instant::now(), tokens.iter().map(|token| *token.hash.as_bytes()).collect())
            }
        };
        let (_, known) = listed.insert(digests);
        Ok(known.contains(secret.hash().as_bytes()))
    }

    /// The token that this is, whatever its standing; `None` when it is none.
    pub(crate) async fn find(&self, secret: &Secret) -> Result<Option<FoundToken>, StoreError> {
        let found = in_time(self.store.token(secret.prefix())).await?;
        let Some(token) = found.filter(|token| token.hash == secret.hash()) else { return Ok(None) };
        self.note_use(&token);
        self.known.keep(&token.hash, token.clone());
        Ok(Some(token))
    }

    /// Has the store note that the token was used, in its own time: nobody waits for that.
    fn note_use(&self, token: &FoundToken) {
        let noted = token.view.last_used_at.is_some_and(|used| token.at.duration_since(used) < USED_WITHIN);
        if noted || token.standing() != Standing::Valid {
            return;
        }
        let (store, prefix) = (Arc::clone(&self.store), token.view.prefix.clone());
        tokio::spawn(async move {
            if let Err(error) = store.touch_token(&prefix).await {
                tracing::debug!(error = error.chain(), "the use of a token was not noted");
            }
        });
    }
}

/// Refuses a token that cannot be used now, and says why.
pub(crate) fn check(token: &FoundToken) -> Result<(), Problem> {
    let refused = |code, words: String| Err(Problem::new(StatusCode::UNAUTHORIZED, code, words));
    let (view, now) = (&token.view, token.at);
    match token.standing() {
        Standing::Valid => Ok(()),
        Standing::Revoked => refused("token_revoked", format!("token {} was revoked", view.name)),
        Standing::NotYet => refused(
            "token_not_yet_valid",
            format!(
                "token {} is valid from {:.0} on; on the store's clock it is {now:.0}",
                view.name, view.starts_at
            ),
        ),
        Standing::Expired => {
            let at = view.expires_at.unwrap_or(now);
            let words =
                format!("token {} expired at {at:.0}; on the store's clock it is {now:.0}", view.name);
            refused("token_expired", words)
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
