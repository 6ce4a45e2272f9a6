//! Accepting connections: each gets a slot, or a spare slot if all slots are taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;

use super::connection_slots::{ConnectionSlot, ConnectionSlots};
use super::idle::Idle;
use super::spare_slots::{Spare, SpareSlot};
use crate::client::Client;
use crate::proxies::TrustedProxies;

/// Wait after a connection could not be accepted, mostly because the process has no file descriptors left.
const REST: Duration = Duration::from_millis(100);
/// How long a new connection waits for a slot before idle connections are evicted, and again afterwards.
const EVICTION_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct ConnectionGate {
    pub(super) listener: TcpListener,
    pub(super) places: Arc<ConnectionSlots>,
    pub(super) spare: Arc<Spare>,
    pub(super) idle: Arc<Idle>,
    pub(super) proxies: TrustedProxies,
    /// Whether all slots were still in use for the last new connection, after idle connections had been evicted.
    pub(super) crowded: bool,
}

/// The slot or the spare slot of a connection.
pub(super) enum Admitted {
    ConnectionSlot(ConnectionSlot),
    SpareSlot(Arc<SpareSlot>),
}

impl ConnectionGate {
    /// Returns the next connection. Acquires a slot only after a connection has arrived: connections on spare slots wait for
    /// slots, too.
    pub(super) async fn next(&mut self) -> Option<(Admitted, TcpStream, SocketAddr)> {
        loop {
            let (stream, peer) = self.accept().await;
            let (client, is_proxy) = (Client::at(peer.ip()), self.proxies.trusts(peer.ip()));
            if let Some(permit) = self.free().await? {
                match self.places.give(permit, client, is_proxy) {
                    Ok(place) => return Some((Admitted::ConnectionSlot(place), stream, peer)),
                    Err(_) => {
                        tracing::debug!(%peer, "a connection was closed: its address already uses half of all places");
                    }
                }
                continue;
            }
            match self.spare.enter(client, is_proxy) {
                Some(seat) => return Some((Admitted::SpareSlot(seat), stream, peer)),
                None => {
                    tracing::debug!(%peer, "a connection was closed: all places and spare slots are in use");
                }
            }
        }
    }

    /// Returns a free slot, after idle connections had time to end; the inner `None` means that all are in use.
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
                // A tenth of all places, so that many new connections do not wait for each other.
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
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}
