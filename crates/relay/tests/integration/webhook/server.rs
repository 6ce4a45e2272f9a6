//! Receiver of webhooks with configurable answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Header names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// The answer to a request.
pub(crate) enum Reply {
    /// Status line and headers, each with its line break, and the body.
    Says(String, String),
    /// The same, after a delay.
    SaysLater(Duration, String),
    /// A body without end.
    NeverEnds(String),
    /// Closes the connection.
    Breaks,
    /// Sends nothing.
    Hangs,
}

impl Reply {
    pub(crate) fn status(status: &str) -> Self {
        Self::Says(format!("{status}\r\n"), String::new())
    }
}

/// Returns the answer to a request. The number is its position, starting with 0.
type Answering = dyn Fn(&Request, usize) -> Reply + Send + Sync;

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    taken: Arc<Mutex<Vec<Request>>>,
    hung_up_on: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
    under_way_max: Arc<AtomicUsize>,
    answering: Arc<Answering>,
}

impl Server {
    pub(crate) async fn at(
        address: &str,
        answering: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            requests: Arc::default(),
            taken: Arc::default(),
            hung_up_on: Arc::default(),
            connections: Arc::default(),
            under_way: Arc::default(),
            under_way_max: Arc::default(),
            answering: Arc::new(answering),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let serving = serving.clone();
                tokio::spawn(async move {
                    let _ = serving.serve(BufReader::new(stream)).await;
                });
            }
        });
        server
    }

    pub(crate) async fn answering(
        answering: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", answering).await
    }

    /// Starts a receiver that accepts all requests.
    pub(crate) async fn taking_all() -> Self {
        Self::answering(|_, _| Reply::status("204 No Content")).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks/milepost", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the requests that were answered with 2xx.
    pub(crate) fn taken(&self) -> Vec<Request> {
        self.taken.lock().unwrap().clone()
    }

    /// Returns how many clients disconnected before they had received the whole answer.
    pub(crate) fn hung_up_on(&self) -> usize {
        self.hung_up_on.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns the maximum number of concurrent requests.
    pub(crate) fn under_way_max(&self) -> usize {
        self.under_way_max.load(Ordering::SeqCst)
    }

    async fn serve(&self, mut stream: BufReader<TcpStream>) -> Option<()> {
        loop {
            let request = read(&mut stream).await?;
            let place = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(request.clone());
                requests.len() - 1
            };
            let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.under_way_max.fetch_max(now, Ordering::SeqCst);
            let reply = (self.answering)(&request, place);
            let (head, body) = match reply {
                Reply::Says(head, body) => (head, body),
                Reply::SaysLater(wait, head) => {
                    tokio::time::sleep(wait).await;
                    (head, String::new())
                }
                Reply::NeverEnds(head) => {
                    stream.write_all(format!("HTTP/1.1 {head}\r\n").as_bytes()).await.ok()?;
                    while stream.write_all(&[b'x'; 16 * 1024]).await.is_ok() {}
                    self.hung_up_on.fetch_add(1, Ordering::SeqCst);
                    return None;
                }
                Reply::Breaks => return None,
                Reply::Hangs => std::future::pending().await,
            };
            if head.starts_with('2') {
                self.taken.lock().unwrap().push(request);
            }
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            let length = if head.starts_with("204") {
                String::new()
            } else {
                format!("content-length: {}\r\n", body.len())
            };
            stream.write_all(format!("HTTP/1.1 {head}{length}\r\n{body}").as_bytes()).await.ok()?;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        // Header values may contain non-ASCII bytes.
        let mut line = Vec::new();
        stream.read_until(b'\n', &mut line).await.ok().filter(|&bytes| bytes > 0)?;
        match String::from_utf8(line).unwrap().trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ');
    assert_eq!(words.next(), Some("POST"));
    let path = words.next()?.to_owned();
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { path, headers, body })
}
