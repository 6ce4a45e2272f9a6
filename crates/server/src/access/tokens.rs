//! Tokens of the store, cached for a short time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::SignedDuration;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::token::{FoundToken, Secret, Standing};

use super::{FRESH, Memory, Recalled};
use crate::problem::{Code, Problem};
use crate::store_timeout::in_time;

/// The precision of a token's last use: it is stored at most once in this time.
const USED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The tokens of a store.
pub(crate) struct Tokens {
    store: Arc<dyn Store>,
    /// Whether tokens are needed even if the store has none.
    required: bool,
    /// Whether the store has tokens, and when it was queried.
    asked: Mutex<Option<(Instant, bool)>>,
    /// Tokens that requests contained.
    known: Memory<FoundToken>,
    /// All tokens, and when they were read. Used when unknown clients send too many requests.
    listed: tokio::sync::Mutex<Option<(Instant, Vec<FoundToken>)>>,
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

    /// Returns whether requests need a token. If the store does not respond, its last result is used.
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

    /// Returns the cached result for a token.
    pub(crate) fn recall(&self, secret: &Secret) -> Recalled<FoundToken> {
        self.known.recall(&secret.hash())
    }

    /// Returns whether the store has this token. Reads all tokens, at most once a second for all callers.
    pub(crate) async fn is_listed(&self, secret: &Secret) -> Result<bool, StoreError> {
        let mut listed = self.listed.lock().await;
        let known = match listed.take().filter(|(at, _)| at.elapsed() < FRESH) {
            Some(fresh) => fresh,
            None => {
                let tokens = in_time(self.store.tokens()).await?;
                (Instant::now(), tokens)
            }
        };
        let (_, known) = listed.insert(known);
        Ok(known.iter().any(|token| token.view.prefix == secret.prefix() && token.is_of(secret)))
    }

    /// Returns the token, valid or not; `None` if it does not exist.
    pub(crate) async fn find(&self, secret: &Secret) -> Result<Option<FoundToken>, StoreError> {
        let found = in_time(self.store.token(secret.prefix())).await?;
        let Some(token) = found.filter(|token| token.is_of(secret)) else { return Ok(None) };
        self.note_use(&token);
        self.known.keep(&secret.hash(), token.clone());
        Ok(Some(token))
    }

    /// Stores the time of last use in the background.
    fn note_use(&self, token: &FoundToken) {
        let noted = token.view.last_used_at.is_some_and(|used| token.at.duration_since(used) < USED_WITHIN);
        if noted || token.standing() != Standing::Valid {
            return;
        }
        let (store, prefix) = (Arc::clone(&self.store), token.view.prefix.clone());
        tokio::spawn(async move {
            if let Err(error) = store.touch_token(&prefix).await {
                tracing::debug!(error = error.chain(), "the time of a token's last use was not stored");
            }
        });
    }
}

/// Refuses a token that is revoked, expired or not yet valid.
pub(crate) fn check(token: &FoundToken) -> Result<(), Problem> {
    let refused = |code, words: String| Err(Problem::new(code, words));
    let (view, now) = (&token.view, token.at);
    match token.standing() {
        Standing::Valid => Ok(()),
        Standing::Revoked => refused(Code::TokenRevoked, format!("token {} was revoked", view.name)),
        Standing::NotYet => refused(
            Code::TokenNotYetValid,
            format!(
                "token {} is not valid before {:.0}; the time on the store's clock is {now:.0}",
                view.name, view.starts_at
            ),
        ),
        Standing::Expired => {
            let at = view.expires_at.unwrap_or(now);
            let words =
                format!("token {} expired at {at:.0}; the time on the store's clock is {now:.0}", view.name);
            refused(Code::TokenExpired, words)
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
