//! TCP proxy that loses and delays replies and cuts connections, to simulate a slow or broken network.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The time after which a server finds that a silent client is gone: by the keepalives that Milepost asks for.
const NOTICED_AFTER: Duration = Duration::from_secs(35);

/// A proxy between a client and a server.
pub struct Proxy {
    address: SocketAddr,
    /// The host and port of the server.
    server: Arc<Mutex<String>>,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    /// Every reply is lost.
    lossy: AtomicBool,
    /// While true, new connections are refused and existing ones are closed.
    shut: watch::Sender<bool>,
    /// How often the existing connections were silenced.
    silences: watch::Sender<u64>,
    /// How much later each reply arrives, in microseconds.
    delay_us: AtomicU64,
    /// The first reply that contains these bytes is lost.
    marker: Mutex<Option<Vec<u8>>>,
    /// The connection to cut, and when.
    cut: Mutex<Option<Cut>>,
}

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request does not reach the server.
    BeforeSend,
    /// The server receives the request; its answer is not read.
    AfterSend,
    /// The server has answered; the answer is lost.
    AfterReply,
}

#[derive(Debug)]
struct Cut {
    /// Bytes in the first message of the connection that identify the application.
    application: Vec<u8>,
    /// How many of its requests pass before the cut.
    left: usize,
    moment: Moment,
}

impl Faults {
    /// Returns whether connections that start with these bytes are to be cut.
    fn watches(&self, begin: &[u8]) -> bool {
        let cut = self.cut.lock().expect("the lock is poisoned");
        cut.as_ref()
            .is_some_and(|cut| begin.windows(cut.application.len()).any(|part| part == cut.application))
    }

    /// Returns how to cut the connection if this is the request at which it breaks.
    fn cuts(&self) -> Option<Moment> {
        let mut cut = self.cut.lock().expect("the lock is poisoned");
        let its = cut.as_mut()?;
        if its.left > 0 {
            its.left -= 1;
            return None;
        }
        cut.take().map(|cut| cut.moment)
    }

    fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us.load(Ordering::SeqCst))
    }

    fn hit(&self, reply: &[u8]) -> bool {
        let mut marker = self.marker.lock().expect("the lock is poisoned");
        let marked =
            marker.as_ref().is_some_and(|bytes| reply.windows(bytes.len()).any(|part| part == bytes));
        if marked {
            *marker = None;
        }
        marked || self.lossy.load(Ordering::SeqCst)
    }
}

impl Proxy {
    /// Starts a proxy in front of the server at `host:port`.
    pub async fn before(server: String) -> Self {
        let server = Arc::new(Mutex::new(server));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("no free port");
        let address = listener.local_addr().expect("no local address");
        let faults = Arc::new(Faults::default());
        let (of_connections, target) = (faults.clone(), server.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = target.lock().expect("the lock is poisoned").clone();
                let faults = of_connections.clone();
                tokio::spawn(async move {
                    // A server that refuses connections is as good as one that closes them.
                    let _ = serve(client, &server, &faults).await;
                });
            }
        });
        Self { address, server, faults }
    }

    /// Passes new connections to another server from now on.
    pub fn lead_to(&self, server: String) {
        *self.server.lock().expect("the lock is poisoned") = server;
    }

    /// Returns the address for clients: host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts a proxy for a database server. Returns it with the URL of the same database through it.
    pub async fn for_url(database_url: &str) -> (Self, String) {
        let rest = database_url.split_once('@').expect("the URL has no user").1;
        let (host, _) = rest.split_once('/').expect("the URL has no database");
        let proxy = Self::before(host.to_owned()).await;
        let url = database_url.replace(host, &proxy.address.to_string());
        (proxy, url)
    }

    /// From now on, requests reach the server, but the connection is closed instead of returning a reply.
    pub fn lose_replies(&self, lose: bool) {
        self.faults.lossy.store(lose, Ordering::SeqCst);
    }

    /// From now on, each reply arrives later by this time. Replies of one connection stay in order.
    pub fn delay_replies(&self, delay: Duration) {
        let delay_us = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.faults.delay_us.store(delay_us, Ordering::SeqCst);
    }

    /// From now on, closes every existing and new connection, like a server that is down.
    pub fn shut(&self, shut: bool) {
        self.faults.shut.send_replace(shut);
    }

    /// Stops all traffic on the existing connections but leaves them open, like a firewall that has dropped their state. The server closes its end when it finds that
    /// the client is gone. New connections work.
    pub fn fall_silent(&self) {
        self.faults.silences.send_modify(|silences| *silences += 1);
    }

    /// Loses the next reply that contains these bytes: the connection is closed instead.
    pub fn lose_reply_with(&self, bytes: &[u8]) {
        *self.faults.marker.lock().expect("the lock is poisoned") = Some(bytes.to_vec());
    }

    /// Cuts a connection of this application at one of its requests, counted from 0 and across connections.
    pub fn cut(&self, application: &str, request: usize, moment: Moment) {
        let application = application.as_bytes().to_vec();
        *self.faults.cut.lock().expect("the lock is poisoned") =
            Some(Cut { application, left: request, moment });
    }

    /// Returns whether the connection has been cut as requested.
    pub fn has_cut(&self) -> bool {
        self.faults.cut.lock().expect("the lock is poisoned").is_none()
    }

    /// Returns whether the reply that was to be lost has been lost.
    pub fn has_lost_it(&self) -> bool {
        self.faults.marker.lock().expect("the lock is poisoned").is_none()
    }
}

/// Connects the client to the server until one of them closes its connection, or a fault does.
async fn serve(mut client: TcpStream, server: &str, faults: &Faults) -> std::io::Result<()> {
    let (mut shut, mut silences) = (faults.shut.subscribe(), faults.silences.subscribe());
    if *shut.borrow() {
        return Ok(());
    }
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    tokio::select! {
        biased;
        _ = shut.wait_for(|shut| *shut) => return Ok(()),
        _ = silences.changed() => {}
        done = pass(&mut client, &mut server, faults) => return done,
    }
    // Both ends stay open, until the server notices that its client is gone.
    if tokio::time::timeout(NOTICED_AFTER, shut.wait_for(|shut| *shut)).await.is_err() {
        drop(server);
        let _ = shut.wait_for(|shut| *shut).await;
    }
    Ok(())
}

async fn pass(client: &mut TcpStream, server: &mut TcpStream, faults: &Faults) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let unanswered = AtomicBool::new(false);
    let requests = async {
        let (mut buffer, mut watched) = (vec![0; 64 * 1024], false);
        loop {
            let bytes = from_client.read(&mut buffer).await?;
            if bytes == 0 {
                return to_server.shutdown().await;
            }
            watched = watched || faults.watches(&buffer[..bytes]);
            match if watched { faults.cuts() } else { None } {
                Some(Moment::BeforeSend) => return Err(std::io::ErrorKind::ConnectionReset.into()),
                Some(Moment::AfterSend) => {
                    to_server.write_all(&buffer[..bytes]).await?;
                    return Err(std::io::ErrorKind::ConnectionReset.into());
                }
                Some(Moment::AfterReply) => unanswered.store(true, Ordering::SeqCst),
                None => {}
            }
            to_server.write_all(&buffer[..bytes]).await?;
        }
    };
    let replies = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let bytes = from_server.read(&mut buffer).await?;
            if bytes == 0 {
                return Ok(());
            }
            if faults.hit(&buffer[..bytes]) || unanswered.load(Ordering::SeqCst) {
                // The server has answered. It has therefore committed, or will commit with the data that it has already received.
                tokio::time::sleep(Duration::from_millis(20)).await;
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
            let delay = faults.delay();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            to_client.write_all(&buffer[..bytes]).await?;
        }
    };
    tokio::select! { done = requests => done, done = replies => done }
}
