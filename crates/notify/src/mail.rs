//! Messages as e-mail.

use std::net::IpAddr;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use milepost_core::secrets::Secrets;
use milepost_core::text::is_unprintable;
use milepost_http::{Networks, SecretUrl, in_full};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use tokio::time::timeout;

use crate::fault::{InvalidChannel, SendError};
use crate::message::Message;

/// The time limit of a message: less than the lease of a claim.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of recipients.
const RECIPIENTS_MAX: usize = 20;
/// How many characters of an error of the server are shown.
const WORDS_CHARS_MAX: usize = 300;

const FORM: &str = "write smtps://USER:PASSWORD@HOST, smtp://USER:PASSWORD@HOST for STARTTLS, or smtp://HOST?tls=none within \
                    `allow_networks`; special characters of the password must be percent-encoded";

/// How a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    /// From its beginning.
    Wrapped,
    /// After STARTTLS, without which nothing is sent.
    StartTls,
    None,
}

/// Sends messages through an SMTP server.
pub(crate) struct Mail {
    place: String,
    host: String,
    port: u16,
    encryption: Encryption,
    credentials: Option<Credentials>,
    secrets: Secrets,
    networks: Networks,
    headers: MessageBuilder,
}

impl Mail {
    pub(crate) fn open(
        url: &SecretUrl,
        from: &str,
        to: &[String],
        allow_networks: &[String],
    ) -> Result<Self, InvalidChannel> {
        let refused = |why: &str| InvalidChannel::new("smtp", format!("{why}; {FORM}"));
        let url = Url::parse(url.expose()).map_err(|_| refused("it is not a URL"))?;
        let encryption = match (url.scheme(), url.query()) {
            ("smtps", None) => Encryption::Wrapped,
            ("smtp", None) => Encryption::StartTls,
            ("smtp", Some("tls=none")) => Encryption::None,
            _ => {
                return Err(refused(
                    "it does not begin with smtps:// or smtp://, or has an unknown parameter",
                ));
            }
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| refused("it has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port().unwrap_or(if encryption == Encryption::Wrapped { 465 } else { 587 });
        let networks = Networks::parse(allow_networks, encryption != Encryption::None)
            .map_err(|why| InvalidChannel::new("allow_networks", why.to_string()))?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let credentials = url.password().map(|password| (decoded(url.username()), decoded(password)));
        let mut headers =
            lettre::Message::builder().from(mailbox("from", from)?).header(ContentType::TEXT_PLAIN);
        if to.is_empty() || to.len() > RECIPIENTS_MAX {
            return Err(InvalidChannel::new("to", format!("write 1 to {RECIPIENTS_MAX} addresses")));
        }
        for recipient in to {
            headers = headers.to(mailbox("to", recipient)?);
        }
        Ok(Self {
            place: format!("{}://{host}:{port}", url.scheme()),
            host,
            port,
            encryption,
            secrets: Secrets::new(credentials.iter().map(|(_, password)| password.clone())),
            credentials: credentials.map(|(user, password)| Credentials::new(user, password)),
            networks,
            headers,
        })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) async fn send(&self, message: &Message<'_>) -> Result<(), SendError> {
        let late = SendError::new(format!("{} did not accept the message within {TIMEOUT:?}", self.place));
        timeout(TIMEOUT, self.deliver(message)).await.unwrap_or(Err(late))
    }

    async fn deliver(&self, message: &Message<'_>) -> Result<(), SendError> {
        let mail = self
            .headers
            .clone()
            .message_id(Some(format!("<{}@milepost>", message.id)))
            .subject(message.headline())
            .body(message.text())
            .map_err(|error| self.failed(&error.to_string()))?;
        let addresses = self.addresses().await?;
        let mut last = self.failed("its name has no address");
        for address in addresses {
            match self.connection(address)?.send(mail.clone()).await {
                Ok(_) => return Ok(()),
                // Another address cannot change the server's answer.
                Err(error) if error.is_permanent() || error.is_transient() => {
                    return Err(self.failed(&in_full(&error)));
                }
                Err(error) => last = self.failed(&in_full(&error)),
            }
        }
        Err(last)
    }

    /// Returns the addresses of the server, each of which is allowed.
    async fn addresses(&self) -> Result<Vec<IpAddr>, SendError> {
        self.networks.resolve(&self.host).await.map_err(|error| {
            if error.kind() == std::io::ErrorKind::PermissionDenied && self.encryption == Encryption::None {
                let why = "its address is not in a network of `allow_networks`; mail without TLS is sent only there; use smtps://";
                return self.failed(why);
            }
            self.failed(&error.to_string())
        })
    }

    /// Returns a transport that connects to this address, and checks the certificate of the host's name.
    fn connection(&self, address: IpAddr) -> Result<AsyncSmtpTransport<Tokio1Executor>, SendError> {
        let parameters =
            || TlsParameters::new(self.host.clone()).map_err(|error| self.failed(&in_full(&error)));
        let tls = match self.encryption {
            Encryption::Wrapped => Tls::Wrapper(parameters()?),
            Encryption::StartTls => Tls::Required(parameters()?),
            Encryption::None => Tls::None,
        };
        let transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(address.to_string())
            .port(self.port)
            .tls(tls)
            .hello_name(ClientId::Domain("milepost".to_owned()))
            .timeout(Some(TIMEOUT / 3));
        Ok(match &self.credentials {
            Some(credentials) => transport.credentials(credentials.clone()),
            None => transport,
        }
        .build())
    }

    fn failed(&self, why: &str) -> SendError {
        let why = self.secrets.hide(why.to_owned()).replace(is_unprintable, " ");
        let why: String = why.chars().take(WORDS_CHARS_MAX).collect();
        SendError::new(format!("{}: {why}", self.place))
    }
}

fn mailbox(setting: &'static str, text: &str) -> Result<Mailbox, InvalidChannel> {
    text.parse().map_err(|error| {
        let form = "write an address such as \"ops@example.com\" or \"Milepost <milepost@example.com>\"";
        InvalidChannel::new(setting, format!("{text:?} is not a mail address ({error}); {form}"))
    })
}
