//! Spare slots for connections beyond the slots of a server. If all slots are taken, a new connection gets a spare slot, on
//! which the server answers one request: a probe immediately, so that a supervisor does not take a busy server for a dead one;
//! any other request when a slot is free. New connections replace those that have waited longest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::client::Client;
use crate::health::is_probe;

/// Number of spare slots, and maximum number for one address.
const SPARE_SLOTS: usize = 64;
const SPARE_SLOTS_OF_EACH: usize = 16;
/// How long a replaced connection can still send its request, which then gets a response.
const GRACE: Duration = Duration::from_millis(100);

/// The spare slots of a server.
#[derive(Default)]
pub(super) struct Spare(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    next: u64,
    /// Number of connections that have not ended, including those that were asked to end.
    present: usize,
    /// Connections that can be asked to end, longest waiting first.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    client: Client,
    leave: CancellationToken,
}

/// The spare slot of a connection; released on drop.
pub(super) struct SpareSlot {
    spare: Arc<Spare>,
    number: u64,
    client: Client,
    is_proxy: bool,
    leave: CancellationToken,
    asked: Mutex<bool>,
}

/// The error if no slot is free: the client may retry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Spare {
    /// Returns a spare slot for a new connection. If there are too many, the one that has waited longest is asked to end. `None`: too
    /// many of those have not ended yet.
    pub(super) fn enter(self: &Arc<Self>, client: Client, is_proxy: bool) -> Option<Arc<SpareSlot>> {
        let mut queue = self.lock();
        if queue.present >= SPARE_SLOTS * 2 {
            return None;
        }
        let of_client = queue.waiting.values().filter(|waiting| waiting.client == client).count();
        let has_share = of_client >= SPARE_SLOTS_OF_EACH && !client.is_here() && !is_proxy;
        let leaves = |waiting: &Waiting| !has_share || waiting.client == client;
        let longest = queue.waiting.iter().find(|(_, waiting)| leaves(waiting)).map(|(number, _)| *number);
        if has_share || queue.waiting.len() >= SPARE_SLOTS {
            let asked = longest.and_then(|number| queue.waiting.remove(&number));
            asked.inspect(|asked| asked.leave.cancel());
        }
        let (number, leave) = (queue.next, CancellationToken::new());
        queue.next += 1;
        queue.present += 1;
        queue.waiting.insert(number, Waiting { client, leave: leave.clone() });
        let seat =
            SpareSlot { spare: Arc::clone(self), number, client, is_proxy, leave, asked: Mutex::default() };
        Some(Arc::new(seat))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpareSlot {
    /// Waits until a request for this path may be answered, and returns its slot. Probes need no slot.
    pub(super) async fn admit(
        &self,
        path: &str,
        places: &ConnectionSlots,
    ) -> Result<Option<ConnectionSlot>, Full> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        if is_probe(path) {
            self.stay();
            return Ok(None);
        }
        let permit = tokio::select! {
            permit = places.free() => permit.ok_or(Full)?,
            () = self.leave.cancelled() => return Err(Full),
        };
        let place = places.give(permit, self.client, self.is_proxy).map_err(|_| Full)?;
        self.stay();
        Ok(Some(place))
    }

    /// Returns when a connection without a request has to end.
    pub(super) async fn evicted(&self) {
        self.leave.cancelled().await;
        tokio::time::sleep(GRACE).await;
        if *self.asked.lock().unwrap_or_else(PoisonError::into_inner) {
            // Its request has been refused, or is being answered.
            std::future::pending::<()>().await;
        }
    }

    /// Removes the connection from those that can be asked to end.
    fn stay(&self) {
        self.spare.lock().waiting.remove(&self.number);
    }
}

impl Drop for SpareSlot {
    fn drop(&mut self) {
        let mut queue = self.spare.lock();
        queue.waiting.remove(&self.number);
        queue.present -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Client {
        Client::at(address.parse().unwrap())
    }

    #[tokio::test]
    async fn those_who_wait_for_longest_make_room_and_one_address_only_for_itself() {
        let spare = Arc::new(Spare::default());
        let other = spare.enter(at("10.0.0.2"), false).unwrap();
        let flood: Vec<_> = (0..SPARE_SLOTS).map(|_| spare.enter(at("10.0.0.1"), false).unwrap()).collect();
        let asked = |seats: &[Arc<SpareSlot>]| seats.iter().filter(|seat| seat.leave.is_cancelled()).count();
        assert!(!other.leave.is_cancelled() && asked(&flood) == SPARE_SLOTS - SPARE_SLOTS_OF_EACH);
        assert!(flood[0].leave.is_cancelled() && !flood[SPARE_SLOTS - 1].leave.is_cancelled());
        drop(flood);
        let here: Vec<_> = (0..SPARE_SLOTS).map(|_| spare.enter(at("127.0.0.1"), false).unwrap()).collect();
        assert!(other.leave.is_cancelled() && asked(&here) == 0, "clients on this machine may use all seats");
        let leaving: Vec<_> =
            (0..SPARE_SLOTS - 1).map(|_| spare.enter(at("127.0.0.1"), false).unwrap()).collect();
        assert!(asked(&here) == SPARE_SLOTS - 1 && spare.enter(at("127.0.0.1"), false).is_none());
        drop((other, here, leaving));
        let queue = spare.lock();
        assert!(queue.present == 0 && queue.waiting.is_empty());
    }

    #[tokio::test]
    async fn probes_need_no_place_and_others_wait_for_one() {
        let (spare, places) = (Arc::new(Spare::default()), ConnectionSlots::new(1));
        let taken = places.free().await.unwrap();
        let seat = || spare.enter(at("10.0.0.1"), false).unwrap();
        assert!(seat().admit("/healthz", &places).await.is_ok_and(|place| place.is_none()));
        let (waits, leaves) = (seat(), seat());
        leaves.leave.cancel();
        assert_eq!(leaves.admit("/v1/queues", &places).await.err(), Some(Full));
        let freed = async { drop(taken) };
        let (admitted, ()) = tokio::join!(waits.admit("/v1/queues", &places), freed);
        assert!(admitted.is_ok_and(|place| place.is_some()));
    }
}
