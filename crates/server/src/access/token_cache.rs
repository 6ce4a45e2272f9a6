//! A short-lived cache of the store's results for tokens and sessions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use milepost_core::token::Digest;

use super::FRESH;

/// Maximum number of entries.
const KNOWN_MAX: usize = 4_096;

/// The result for each secret, by its digest.
pub(crate) struct Memory<V>(Mutex<HashMap<[u8; 32], (Instant, V)>>);

/// The cache's result for a secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recalled<V> {
    /// A result that is still valid.
    Fresh(V),
    /// The store knew the secret, but the result has expired.
    Stale,
    /// No result: the secret may be a guess.
    Nothing,
}

impl<V: Clone> Memory<V> {
    pub(crate) fn recall(&self, secret: &Digest) -> Recalled<V> {
        match self.lock().get(secret.as_bytes()) {
            Some((at, said)) if at.elapsed() < FRESH => Recalled::Fresh(said.clone()),
            Some(_) => Recalled::Stale,
            None => Recalled::Nothing,
        }
    }

    pub(crate) fn keep(&self, secret: &Digest, said: V) {
        let mut known = self.lock();
        if known.len() >= KNOWN_MAX {
            known.retain(|_, (at, _)| at.elapsed() < FRESH);
        }
        if known.len() < KNOWN_MAX {
            known.insert(*secret.as_bytes(), (Instant::now(), said));
        }
    }

    pub(crate) fn forget(&self, secret: &Digest) {
        self.lock().remove(secret.as_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Instant, V)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Default for Memory<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_counts_for_a_second_and_is_not_taken_for_a_guess_afterwards() {
        let (memory, secret) = (Memory::default(), Digest::of("s"));
        assert_eq!(memory.recall(&secret), Recalled::Nothing);
        memory.keep(&secret, 1);
        assert_eq!(memory.recall(&secret), Recalled::Fresh(1));
        std::thread::sleep(FRESH);
        assert_eq!(memory.recall(&secret), Recalled::Stale);
        memory.forget(&secret);
        assert_eq!(memory.recall(&secret), Recalled::Nothing);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let memory = Memory::default();
        for number in 0..2 * KNOWN_MAX {
            memory.keep(&Digest::of(&number.to_string()), ());
        }
        assert!(memory.lock().len() <= KNOWN_MAX);
    }
}
