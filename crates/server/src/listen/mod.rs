//! Connections: how many, how long, and with TLS.
//!
//! This is not `axum::serve`, which has no bound for a client that connects and says nothing.

mod idle;
mod patience;
mod places;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use self::idle::{Answer, Connection, Idle};
use self::patience::Patience;
use self::places::{Place, Places};
pub(crate) use self::tls::Tls;
pub use self::tls::{TlsError, TlsFiles};
use crate::client::Client;
use crate::limits::Limits;

/// How many headers a request may have.
const HEADERS_MAX: usize = 100;
/// How long to wait when no connection can be taken: there are no more files, mostly.
const REST: Duration = Duration::from_millis(100);
/// How long a newcomer waits for a place before idle connections make room, and again until they have.
const EVICTION_PAUSE: Duration = Duration::from_millis(200);
/// How long a client may take to agree on TLS.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// What every connection is served with.
struct Host {
    router: Router,
    http: http1::Builder,
    tls: Option<Tls>,
    write_time: Duration,
}

/// Takes connections until it is to stop, and then waits for the requests that are under way.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &Limits,
    tls: Option<Tls>,
    stop: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_headers(HEADERS_MAX)
        .max_header_size(limits.header_bytes);
    let host = Arc::new(Host { router, http, tls, write_time: limits.write_time });
    let places = Places::new(limits.connections);
    let idle = Arc::new(Idle::default());
    let graceful = GracefulShutdown::new();
    while let Some((place, stream, peer)) = next(&listener, &places, &idle, &stop).await {
        let (host, watcher, connection) = (Arc::clone(&host), graceful.watcher(), idle.connection());
        tokio::spawn(async move {
            tokio::select! {
                () = host.welcome(stream, peer, watcher, &connection) => {}
                () = connection.evicted() => tracing::debug!(%peer, "an idle connection made room for another one"),
            }
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// The next connection, once there is a place for it; `None` when it is time to stop.
async fn next(
    listener: &TcpListener,
    places: &Places,
    idle: &Idle,
    stop: &CancellationToken,
) -> Option<(Place, TcpStream, SocketAddr)> {
    let mut accept = pin!(async {
        let mut permit = loop {
            match tokio::time::timeout(EVICTION_PAUSE, places.free()).await {
                Ok(permit) => break permit?,
                // A tenth of all, so that many newcomers do not wait for one another.
                Err(_) => idle.evict(places.all().div_ceil(10)),
            }
        };
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => match places.give(permit, Client::at(peer.ip())) {
                    Ok(place) => return Some((place, stream, peer)),
                    Err(free) => {
                        tracing::debug!(%peer, "a connection was closed: its address has half of all");
                        permit = free;
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    });
    tokio::select! {
        () = stop.cancelled() => None,
        connection = &mut accept => connection,
    }
}

impl Host {
    /// Serves a connection until its end.
    async fn welcome(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: Watcher,
        connection: &Arc<Connection>,
    ) {
        // What is answered is written at once.
        let _ = stream.set_nodelay(true);
        let stream = Patience::new(stream, self.write_time);
        let Some(tls) = &self.tls else { return self.serve(stream, peer, watcher, connection).await };
        match tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, peer, watcher, connection).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "a client did not agree on TLS"),
            Err(_) => tracing::debug!(%peer, "a client took too long to agree on TLS"),
        }
    }

    async fn serve<S>(&self, stream: S, peer: SocketAddr, watcher: Watcher, connection: &Arc<Connection>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let client = Client::at(peer.ip());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(client);
            let busy = connection.begin();
            // A router is always ready.
            let answering = self.router.clone().call(request);
            async move { Ok::<_, Infallible>(answering.await?.map(|body| Answer { body, _request: busy })) }
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, %peer, "a connection ended badly");
        }
    }
}
