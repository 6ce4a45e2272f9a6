//! Address and account for RabbitMQ.

use std::fmt;

use lapin::auth::AuthProvider;
use lapin::types::{LongString, ShortString};
use lapin::uri::{AMQPScheme, AMQPUri, AMQPUserInfo};
use rustls::crypto::ring;

use crate::sink::setting::InvalidSink;

/// A server and an account.
pub(crate) struct Address {
    /// Name of the server, for display.
    pub(crate) name: String,
    /// The URI without the account, so that no driver can print the password.
    pub(crate) uri: AMQPUri,
    account: AMQPUserInfo,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidSink> {
        if !url.starts_with("amqp://") && !url.starts_with("amqps://") {
            return Err(InvalidSink::new("url", "it must begin with amqp://, or with amqps:// for TLS"));
        }
        let form = "it is not of the form amqp://USER:PASSWORD@HOST:PORT/VHOST";
        let mut uri: AMQPUri = url.parse().map_err(|_| InvalidSink::new("url", form))?;
        let none = AMQPUserInfo { username: String::new(), password: String::new() };
        let account = std::mem::replace(&mut uri.authority.userinfo, none);
        let tls = match uri.scheme {
            AMQPScheme::AMQP => "",
            AMQPScheme::AMQPS => {
                // Installs the cryptography provider that all connections of Milepost use. Has no effect if the process has already installed another.
                let _ = ring::default_provider().install_default();
                " (TLS)"
            }
        };
        let name = format!("RabbitMQ at {}:{}{tls}", uri.authority.host, uri.authority.port);
        Ok(Self { name, uri, account })
    }

    pub(crate) fn login(&self) -> Login {
        Login(self.account.clone())
    }
}

/// Credentials that are sent when a connection is opened.
pub(crate) struct Login(AMQPUserInfo);

impl AuthProvider for Login {
    fn mechanism(&self) -> ShortString {
        "PLAIN".into()
    }

    fn auth_starter(&self) -> Result<LongString, String> {
        let AMQPUserInfo { username, password } = &self.0;
        Ok(format!("\0{username}\0{password}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_never_shows_its_password() {
        let place = |url: &str| Address::parse(url).map(|place| place.name);
        assert_eq!(place("amqp://ada:s3cret@broker/shop"), Ok("RabbitMQ at broker:5672".to_owned()));
        assert_eq!(place("amqps://ada:s3cret@broker"), Ok("RabbitMQ at broker:5671 (TLS)".to_owned()));
        let known = Address::parse("amqp://ada:s3cret@broker").unwrap();
        assert!(!format!("{known:?} {:?}", known.uri).contains("s3cret"));
        for bad in
            ["", "broker:5672", "http://s3cret@broker", "amqp://ada:s3cret@broker:x", "amqp://ada:s3cret@"]
        {
            let why = place(bad).unwrap_err().to_string();
            assert!(!why.contains("s3cret") && why.contains("amqp://"), "{bad}: {why}");
        }
    }
}
