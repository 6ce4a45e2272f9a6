//! Places for connections: so many in all, and of one address no more than half of them, so that nobody alone keeps all others out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::Client;

/// The places of a server.
pub(super) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Taken>,
    of_one_max: usize,
}

/// How many connections each address has.
#[derive(Default)]
struct Taken(Mutex<HashMap<Client, usize>>);

/// A connection's place, until it is dropped.
pub(super) struct Place {
    client: Client,
    taken: Arc<Taken>,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(all: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(all)), taken: Arc::default(), of_one_max: all.div_ceil(2) }
    }

    /// Waits until one is free.
    pub(super) async fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Gives it to the client, unless it has its share; those of this machine have all that there are. Gives it back if so.
    pub(super) fn give(
        &self,
        permit: OwnedSemaphorePermit,
        client: Client,
    ) -> Result<Place, OwnedSemaphorePermit> {
        let mut taken = self.taken.lock();
        let its = taken.entry(client).or_default();
        if *its >= self.of_one_max && !client.is_here() {
            return Err(permit);
        }
        *its += 1;
        Ok(Place { client, taken: Arc::clone(&self.taken), _permit: permit })
    }
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, HashMap<Client, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(its) = taken.get_mut(&self.client) {
            *its -= 1;
            if *its == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_has_half_of_the_places_and_this_machine_all() {
        let places = Places::new(4);
        let at = |address: &str| Client::at(address.parse().unwrap());
        let mut held = Vec::new();
        let mut permit = places.free().await.unwrap();
        for _ in 0..2 {
            held.push(places.give(permit, at("10.0.0.1")).ok().unwrap());
            permit = places.free().await.unwrap();
        }
        permit = places.give(permit, at("10.0.0.1")).err().unwrap();
        held.push(places.give(permit, at("10.0.0.2")).ok().unwrap());
        held.remove(0);
        let permit = places.free().await.unwrap();
        let again = places.give(permit, at("10.0.0.1")).ok().unwrap();
        drop((held, again));
        assert!(places.taken.lock().is_empty());
        let mut here = Vec::new();
        for _ in 0..4 {
            here.push(places.give(places.free().await.unwrap(), at("127.0.0.1")).ok().unwrap());
        }
    }
}
