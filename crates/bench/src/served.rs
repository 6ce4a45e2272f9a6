//! The server of a benchmark, which runs in the same process, and connections to it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use milepost_core::port::Store;
use milepost_server::{self as server, Options, ServerError};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A server on a port of the loopback address.
pub(super) struct Served {
    pub(super) at: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), ServerError>>,
}

impl Served {
    pub(super) async fn start(store: &Arc<dyn Store>, options: Options) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (at, stop) = (listener.local_addr()?, CancellationToken::new());
        let serving = server::serve(listener, store.clone(), options, stop.clone());
        Ok(Self { at, stop, serving: tokio::spawn(serving) })
    }

    /// Stops the server and waits until it has answered the requests in progress.
    pub(super) async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.serving.await??;
        Ok(())
    }
}

/// A connection that is reused for all requests.
pub(super) struct Connection(SendRequest<Full<Bytes>>);

pub(super) async fn connect(at: SocketAddr) -> Result<Connection> {
    let stream = TcpStream::connect(at).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(Connection(sender))
}

impl Connection {
    /// Sends a request and reads the complete response.
    pub(super) async fn ask(&mut self, request: Request<Full<Bytes>>) -> Result<Response> {
        let began = Instant::now();
        self.0.ready().await?;
        let response = self.0.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await.context("the response was incomplete")?.to_bytes();
        Ok(Response { status, body, took: began.elapsed() })
    }
}

/// A server's response, and how long it took.
pub(super) struct Response {
    pub(super) status: StatusCode,
    /// The body as transferred.
    pub(super) body: Bytes,
    pub(super) took: Duration,
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, String::from_utf8_lossy(&self.body))
    }
}
