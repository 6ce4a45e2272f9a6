//! Receivers of messages: an HTTP server and an SMTP server that record what they get.

use std::sync::{Arc, Mutex};

use milepost_testkit::wait;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A received request or mail.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Header names in lower case; for mails, the commands of the session.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Returns the status line of the answer to the request at this position, from 0; `None`: it is never answered.
type Answering = dyn Fn(usize) -> Option<&'static str> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// Starts an HTTP server.
    pub(crate) async fn http(
        answering: impl Fn(usize) -> Option<&'static str> + Send + Sync + 'static,
    ) -> Self {
        let (listener, receiver) = Self::listen().await;
        let (receiving, answering) = (receiver.clone(), Arc::new(answering) as Arc<Answering>);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (receiver, answering) = (receiving.clone(), Arc::clone(&answering));
                tokio::spawn(async move { receiver.serve_http(BufReader::new(stream), &*answering).await });
            }
        });
        receiver
    }

    /// Starts an HTTP server that accepts everything.
    pub(crate) async fn accepting() -> Self {
        Self::http(|_| Some("200 OK")).await
    }

    /// Starts an SMTP server that refuses the recipients which contain `nobody`.
    pub(crate) async fn smtp() -> Self {
        let (listener, receiver) = Self::listen().await;
        let receiving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let receiver = receiving.clone();
                tokio::spawn(async move { receiver.serve_smtp(BufReader::new(stream)).await });
            }
        });
        receiver
    }

    async fn listen() -> (TcpListener, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, Self { port, received: Arc::default() })
    }

    pub(crate) fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits for this number of messages, and returns them.
    pub(crate) async fn until(&self, number: usize) -> Vec<Received> {
        wait::until(&format!("{number} messages arrive"), || async { self.all().len() >= number }).await;
        self.all()
    }

    fn add(&self, received: Received) -> usize {
        let mut all = self.received.lock().unwrap();
        all.push(received);
        all.len() - 1
    }

    async fn serve_http(&self, mut stream: BufReader<TcpStream>, answering: &Answering) {
        let (mut headers, mut length) = (Vec::new(), 0);
        let mut line = String::new();
        while stream.read_line(&mut line).await.unwrap_or(0) > 2 {
            if let Some((name, value)) = line.trim().split_once(": ") {
                let name = name.to_lowercase();
                if name == "content-length" {
                    length = value.parse().unwrap();
                }
                headers.push((name, value.to_owned()));
            }
            line.clear();
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let place = self.add(Received { headers, body: String::from_utf8(body).unwrap() });
        match answering(place) {
            Some(status) => {
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
            None => std::future::pending().await,
        }
    }

    async fn serve_smtp(&self, mut stream: BufReader<TcpStream>) {
        let mut session = Received { headers: Vec::new(), body: String::new() };
        let _ = stream.write_all(b"220 mail.test ESMTP\r\n").await;
        let mut line = String::new();
        while stream.read_line(&mut line).await.unwrap_or(0) > 0 {
            let command = line.trim().to_owned();
            line.clear();
            let verb = command.split([' ', ':']).next().unwrap_or_default().to_uppercase();
            session.headers.push((verb.to_lowercase(), command.clone()));
            let answer = match verb.as_str() {
                "EHLO" => "250-mail.test\r\n250 AUTH PLAIN\r\n",
                "AUTH" => "235 2.7.0 accepted\r\n",
                "RCPT" if command.contains("nobody") => "550 5.1.1 no such user\r\n",
                "DATA" => {
                    let _ = stream.write_all(b"354 send the mail\r\n").await;
                    while stream.read_line(&mut line).await.unwrap_or(0) > 0 && line != ".\r\n" {
                        session.body.push_str(&line);
                        line.clear();
                    }
                    line.clear();
                    self.add(session.clone());
                    "250 2.0.0 queued\r\n"
                }
                "QUIT" => "221 2.0.0 bye\r\n",
                _ => "250 2.0.0 ok\r\n",
            };
            if stream.write_all(answer.as_bytes()).await.is_err() || verb == "QUIT" {
                return;
            }
        }
    }
}
