//! Where connections come in: each gets a place, or a spare seat when all places are taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;

use super::idle::Idle;
use super::places::{Place, Places};
use super::spare::{Seat, Spare};
use crate::client::Client;
use crate::proxies::TrustedProxies;

/// How long to wait when no connection can be taken: there are no more files, mostly.
const REST: Duration = Duration::from_millis(100);
/// How long a newcomer waits for a place before idle connections make room, and again until they have.
const EVICTION_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Door {
    pub(super) listener: TcpListener,
    pub(super) places: Arc<Places>,
    pub(super) spare: Arc<Spare>,
    pub(super) idle: Arc<Idle>,
    pub(super) proxies: TrustedProxies,
    /// Whether all places were in use when the last connection came, though idle ones had been asked to make room.
    pub(super) crowded: bool,
}

/// What a connection was given.
pub(super) enum Admitted {
    Place(Place),
    Seat(Arc<Seat>),
}

impl Door {
    /// The next connection. It holds no place before there is a connection for it: those on spare seats wait for places, too.
    pub(super) async fn next(&mut self) -> Option<(Admitted, TcpStream, SocketAddr)> {
        loop {
            let (stream, peer) = self.accept().await;
            let (client, is_proxy) = (Client::at(peer.ip()), self.proxies.trusts(peer.ip()));
            if let Some(permit) = self.free().await? {
                match self.places.give(permit, client, is_proxy) {
                    Ok(place) => return Some((Admitted::Place(place), stream, peer)),
                    Err(_) => tracing::debug!(%peer, "a connection was closed: its address has half of all"),
                }
                continue;
            }
            match self.spare.enter(client, is_proxy) {
                Some(seat) => return Some((Admitted::Seat(seat), stream, peer)),
                None => tracing::debug!(%peer, "a connection was closed: all places and seats are taken"),
            }
        }
    }

    /// A free place, once idle connections had time to make room; `None` inside: all are in use.
    async fn free(&mut self) -> Option<Option<OwnedSemaphorePermit>> {
        if let Some(permit) = self.places.try_free() {
            self.crowded = false;
            return Some(Some(permit));
        }
        if self.crowded {
            self.idle.evict(1);
            return Some(None);
        }
        for _ in 0..2 {
            match tokio::time::timeout(EVICTION_PAUSE, self.places.free()).await {
                Ok(permit) => return permit.map(Some),
                // A tenth of all, so that many newcomers do not wait for one another.
                Err(_) => self.idle.evict(self.places.all().div_ceil(10)),
            }
        }
        self.crowded = true;
        Some(None)
    }

    async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(connection) => return connection,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}
