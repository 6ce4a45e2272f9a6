//! A real HTTP server that responds correctly, incorrectly or not at all, depending on the path.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    /// The number of clients that disconnected before the response was complete.
    pub(crate) left: Arc<AtomicUsize>,
    /// The number of bytes written in endless responses.
    pub(crate) endless_bytes: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            left: Arc::default(),
            endless_bytes: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    async fn serve(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some(request) = read(&mut stream).await else { return };
        self.requests.lock().unwrap().push(request.clone());
        if self.answer(&request, stream.into_inner()).await.is_err() {
            self.left.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn answer(&self, request: &Request, mut stream: TcpStream) -> std::io::Result<()> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        if let Some(status) = path.strip_prefix("/status/") {
            let header = query.replace('=', ": ").replace('+', " ");
            let head = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
            let answer = format!("HTTP/1.1 {status} Whatever\r\n{head}content-length: 7\r\n\r\nno luck");
            return stream.write_all(answer.as_bytes()).await;
        }
        if path.starts_with("/refused/") {
            let words = format!("no such address: {}", request.path);
            let head = format!("HTTP/1.1 422 No\r\ncontent-length: {}\r\n\r\n", words.len());
            return stream.write_all(format!("{head}{words}").as_bytes()).await;
        }
        let whole = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        match path {
            "/echo" => stream.write_all(whole(std::str::from_utf8(&request.body).unwrap()).as_bytes()).await,
            "/told" => {
                let told = serde_json::json!({ "told": request.header("x-token") });
                stream.write_all(whole(&told.to_string()).as_bytes()).await
            }
            "/told-refusal" => {
                let words = format!("I do not know {}", request.header("x-token").unwrap_or_default());
                let head = format!("HTTP/1.1 422 No\r\ncontent-length: {}\r\n\r\n", words.len());
                stream.write_all(format!("{head}{words}").as_bytes()).await
            }
            "/text" => stream.write_all(whole("sent 3 mails").as_bytes()).await,
            "/big" => stream.write_all(whole(&format!("{:?}", "x".repeat(200_000))).as_bytes()).await,
            "/empty" => stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await,
            "/garbage" => stream.write_all(b"220 mail.internal ESMTP\r\n\r\n").await,
            "/hang" => until_left(stream).await,
            "/reset" => {
                stream.set_zero_linger()?;
                Ok(())
            }
            "/longer" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n[1, 2]").await,
            "/shorter" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n[1]and more").await,
            "/drip" => drip(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n").await,
            "/drip-refusal" => drip(stream, "HTTP/1.1 503 Busy\r\ncontent-length: 100000\r\n\r\n").await,
            "/drip-head" => drip(stream, "HTTP/1.1 200 OK\r\nx-drip: ").await,
            "/endless" => self.flood(stream, "HTTP/1.1 200 OK\r\n\r\n").await,
            "/endless-refusal" => self.flood(stream, "HTTP/1.1 404 Lost\r\n\r\n").await,
            "/endless-head" => self.flood(stream, "HTTP/1.1 200 OK\r\nx-flood: ").await,
            other => panic!("the test server has no path {other}"),
        }
    }

    async fn flood(&self, mut stream: TcpStream, head: &str) -> std::io::Result<()> {
        stream.write_all(head.as_bytes()).await?;
        loop {
            self.endless_bytes.fetch_add(stream.write(&[b'x'; 16 * 1024]).await?, Ordering::SeqCst);
        }
    }
}

async fn drip(mut stream: TcpStream, head: &str) -> std::io::Result<()> {
    stream.write_all(head.as_bytes()).await?;
    loop {
        stream.write_all(b"x").await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_left(mut stream: TcpStream) -> std::io::Result<()> {
    stream.read_u8().await.map(drop)
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|&bytes| bytes > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines.first()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    // A GET request has no body.
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, length)| length.parse().ok())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { path, headers, body })
}
