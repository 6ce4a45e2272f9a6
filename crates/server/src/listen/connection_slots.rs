//! The limit on connections: one address may use at most half of them, so that a single client cannot keep all others
//! out.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::Client;
use crate::limits::in_flight::{self, InFlight};

/// The slots of a server.
pub(super) struct ConnectionSlots {
    all: usize,
    free: Arc<Semaphore>,
    /// The connections of each client on other machines.
    of_each: Arc<InFlight<Client>>,
}

/// The slot of a connection; released on drop.
pub(super) struct ConnectionSlot {
    _share: Option<in_flight::Permit<Client>>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    pub(super) fn new(all: usize) -> Self {
        Self { all, free: Arc::new(Semaphore::new(all)), of_each: InFlight::new(all.div_ceil(2)) }
    }

    /// Returns the number of slots.
    pub(super) const fn all(&self) -> usize {
        self.all
    }

    /// Waits for a free slot.
    pub(super) async fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Returns a free slot, if there is one now.
    pub(super) fn try_free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Assigns the slot to the client, or returns the permit if the client has its share. Clients on this machine and trusted
    /// proxies may use all slots.
    pub(super) fn give(
        &self,
        permit: OwnedSemaphorePermit,
        client: Client,
        is_proxy: bool,
    ) -> Result<ConnectionSlot, OwnedSemaphorePermit> {
        let has_all = client.is_here() || is_proxy;
        let share = if has_all { None } else { self.of_each.enter(client) };
        if share.is_none() && !has_all {
            return Err(permit);
        }
        Ok(ConnectionSlot { _share: share, _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_has_half_of_the_places_and_this_machine_all() {
        let places = ConnectionSlots::new(4);
        let at = |address: &str| Client::at(address.parse().unwrap());
        let mut held = Vec::new();
        let mut permit = places.free().await.unwrap();
        for _ in 0..2 {
            held.push(places.give(permit, at("10.0.0.1"), false).ok().unwrap());
            permit = places.free().await.unwrap();
        }
        permit = places.give(permit, at("10.0.0.1"), false).err().unwrap();
        held.push(places.give(permit, at("10.0.0.2"), false).ok().unwrap());
        held.remove(0);
        let permit = places.free().await.unwrap();
        let again = places.give(permit, at("10.0.0.1"), false).ok().unwrap();
        drop((held, again));
        assert!(places.of_each.lock().is_empty());
        let mut here = Vec::new();
        for _ in 0..4 {
            here.push(places.give(places.free().await.unwrap(), at("127.0.0.1"), false).ok().unwrap());
        }
    }
}
