//! Access to the server, as set by the command line and the configuration.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use milepost_core::port::Store;
use milepost_server::{Exposure, Options, TlsFiles};

use crate::config::Config;

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7070);

#[derive(Debug, Args)]
pub(super) struct AccessArgs {
    /// The listen address; port 0 means any free port [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS", env = "MILEPOST_LISTEN", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Use TLS with this certificate, a PEM file; it is reloaded when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require tokens although the store has none
    #[arg(long)]
    require_tokens: bool,
    /// A host name of the server; may be given several times
    #[arg(long = "allowed-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Allow tokens to cross the network unencrypted, or let a proxy terminate TLS
    #[arg(long, conflicts_with = "tls_cert")]
    insecure_no_tls: bool,
    /// Allow all operations to everyone who reaches the address while there is no token
    #[arg(long, conflicts_with = "require_tokens")]
    insecure_no_tokens: bool,
}

/// Parses an address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070".to_owned())
}

/// Explains why the server cannot listen on an address, and how to fix it.
pub(super) fn unheard(address: SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "cannot listen at {address}, where another process listens: stop it, or give another address (--listen)"
        ),
        ErrorKind::AddrNotAvailable => format!(
            "cannot listen at {address}: this machine has no such address; 0.0.0.0:{} means all its addresses",
            address.port()
        ),
        _ => format!("cannot listen at {address}"),
    }
}

impl AccessArgs {
    /// Returns the listen address: from the command line, else the file, else the default.
    pub(super) fn listen(&self, config: Option<&Config>) -> SocketAddr {
        self.listen.or_else(|| config.and_then(|config| config.serve.listen())).unwrap_or(LISTEN_DEFAULT)
    }

    /// Returns the server's options; the command line takes precedence over the file.
    pub(super) fn options(&self, config: Option<&mut Config>) -> Options {
        let mut options = Options::default();
        if let Some(config) = config {
            let folder: &Path = &config.folder;
            options.hidden = config.hide.hidden();
            std::mem::take(&mut config.serve).apply(&mut options, folder);
        }
        if let (Some(cert), Some(key)) = (self.tls_cert.clone(), self.tls_key.clone()) {
            options.tls = Some(TlsFiles { cert, key });
        }
        let access = &mut options.access;
        access.require_tokens |= self.require_tokens;
        access.allowed_hosts.extend(self.allowed_hosts.iter().cloned());
        access.behind_tls = self.insecure_no_tls;
        access.open_to_all = self.insecure_no_tokens;
        options
    }
}

/// Rejects an address that other machines can reach without access control, and warns where the user has explicitly allowed it.
pub(super) async fn check(options: &Options, address: SocketAddr, store: &dyn Store) -> Result<()> {
    if let Some(tls) = &options.tls {
        tls.check()?;
    }
    let exposure = options.exposure(store).await?;
    exposure.check(address)?;
    if exposure.asks_for_tokens && options.access.oidc.is_none() && !store.has_tokens().await? {
        tracing::warn!(
            "no client can use the server: tokens are required and there is none; `milepost tokens create` creates one"
        );
    }
    warn_of(exposure, address);
    Ok(())
}

/// Warns about explicitly allowed risks at an address that other machines can reach.
fn warn_of(exposure: Exposure, address: SocketAddr) {
    if exposure.is_reached(address) && !exposure.asks_for_tokens {
        tracing::warn!(
            "everyone who reaches {address} can perform all operations: no token is required (--insecure-no-tokens)"
        );
    }
    if !address.ip().is_loopback() && !exposure.tls {
        tracing::warn!(
            "tokens cross the network unencrypted unless a proxy terminates TLS before {address} (--insecure-no-tls)"
        );
    }
}
