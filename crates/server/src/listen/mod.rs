//! Connections: limits on their number, time limits, and TLS.
//!
//! `axum::serve` is not used, since it has no time limit for a client that connects and sends nothing.

mod accept;
mod connection_slots;
mod idle;
mod spare_slots;
mod tls;
mod unread_body;
mod write_timeout;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use self::accept::{Admitted, ConnectionGate};
use self::connection_slots::{ConnectionSlot, ConnectionSlots};
use self::idle::{Connection, Idle};
use self::spare_slots::{Full, SpareSlot};
pub(crate) use self::tls::Tls;
pub use self::tls::{TlsError, TlsFiles};
use self::write_timeout::Patience;
use crate::client::Client;
use crate::keeping::Keeping;
use crate::limits::Limits;
use crate::problem::{Code, Problem};
use crate::proxies::TrustedProxies;

/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 100;
/// Time limit of the TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The settings that all connections share.
struct Host {
    router: Router,
    http: http1::Builder,
    tls: Option<Tls>,
    write_time: Duration,
    proxies: TrustedProxies,
    places: Arc<ConnectionSlots>,
}

/// Accepts connections until `stop` is cancelled, then waits for the requests in flight.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &Limits,
    proxies: TrustedProxies,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_headers(HEADERS_MAX)
        .max_header_size(limits.header_bytes);
    let (places, idle) = (Arc::new(ConnectionSlots::new(limits.connections)), Arc::new(Idle::default()));
    let host = Arc::new(Host {
        router,
        http,
        tls,
        write_time: limits.write_time,
        proxies: proxies.clone(),
        places: Arc::clone(&places),
    });
    let graceful = GracefulShutdown::new();
    let spare = Arc::default();
    let mut gate =
        ConnectionGate { listener, places, spare, idle: Arc::clone(&idle), proxies, crowded: false };
    while let Some((admitted, stream, peer)) = stop.run_until_cancelled(gate.next()).await.flatten() {
        let (host, watcher) = (Arc::clone(&host), graceful.watcher());
        match admitted {
            Admitted::ConnectionSlot(place) => {
                let connection = idle.connection();
                tokio::spawn(async move {
                    tokio::select! {
                        () = host.welcome(stream, peer, watcher, &connection, None) => {}
                        () = connection.evicted() => tracing::debug!(%peer, "an idle connection was closed in favor of another one"),
                    }
                    drop(place);
                });
            }
            Admitted::SpareSlot(seat) => {
                tokio::spawn(async move {
                    // Connections on spare slots are not evicted through the queue of idle ones.
                    let connection = Arc::new(Idle::default()).connection();
                    tokio::select! {
                        () = host.welcome(stream, peer, watcher, &connection, Some(&seat)) => {}
                        () = seat.evicted() => tracing::debug!(%peer, "a connection without a place was closed in favor of another one"),
                    }
                });
            }
        }
    }
    drop(gate);
    graceful.shutdown().await;
}

impl Host {
    /// Serves a connection until it ends.
    async fn welcome(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: Watcher,
        connection: &Arc<Connection>,
        seat: Option<&Arc<SpareSlot>>,
    ) {
        // Send responses immediately (no Nagle's algorithm).
        let _ = stream.set_nodelay(true);
        let stream = Patience::new(stream, self.write_time);
        let Some(tls) = &self.tls else { return self.serve(stream, peer, watcher, connection, seat).await };
        match tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, peer, watcher, connection, seat).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "the TLS handshake with a client failed"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake with a client exceeded the time limit"),
        }
    }

    async fn serve<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        watcher: Watcher,
        connection: &Arc<Connection>,
        seat: Option<&Arc<SpareSlot>>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            let client = Client::at(self.proxies.client(peer.ip(), request.headers()));
            request.extensions_mut().insert(client);
            let busy = connection.begin();
            async move {
                let (response, place) = match seat {
                    None => (self.answer(request).await, None),
                    Some(seat) => self.answer_one(request, seat).await,
                };
                Ok::<_, Infallible>(response.map(|body| Keeping { body, _kept: (busy, place) }))
            }
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, %peer, "a connection ended with an error");
        }
    }

    async fn answer(&self, request: Request) -> Response {
        let (request, reading) = unread_body::watch(request);
        // A router is always ready.
        let mut response = match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        reading.tell(&mut response);
        response
    }

    /// Serves the only request of a connection without a slot. Also returns the slot that the request was given.
    async fn answer_one(&self, request: Request, seat: &SpareSlot) -> (Response, Option<ConnectionSlot>) {
        let (mut response, place) = match seat.admit(request.uri().path(), &self.places).await {
            Ok(place) => (self.answer(request).await, place),
            Err(Full) => (full().into_response(), None),
        };
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        (response, place)
    }
}

fn full() -> Problem {
    let words = "all connections are in use; retry after the time in Retry-After";
    Problem::new(Code::TooManyConnections, words).retry_after_s(1)
}
