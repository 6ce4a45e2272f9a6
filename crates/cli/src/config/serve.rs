//! `[serve]`: listen address and access settings of the server.

use std::net::SocketAddr;
use std::path::Path;

use milepost_core::limit::Rate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;
use super::humane::Humane;
use super::oidc::{self, Oidc};
use milepost_server::{ForwardedHeader, Options, TlsFiles, TrustedProxies};

/// The address and the access control of `milepost serve` ([SECURITY.md](SECURITY.md)). Insecure options exist on the command line
/// only.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Serve {
    /// The listen address: an IP address and a port. The default is `127.0.0.1:7070`.
    listen: Option<String>,
    /// The TLS certificate with its intermediate certificates: a PEM file, relative to the folder of this file. It is reloaded
    /// when it changes. `config check` does not read it, because only servers need it.
    tls_cert: Option<String>,
    /// The private key of the certificate: a PEM file.
    tls_key: Option<String>,
    /// Whether tokens are required although the store has none. The default is `false`: they are required as soon as there is one.
    require_tokens: bool,
    /// The host names of the server, such as `jobs.example.org`, in addition to those of this machine. By default, any name is allowed when
    /// tokens are required.
    #[schemars(length(min = 1))]
    allowed_hosts: Option<Vec<String>>,
    /// Proxies in front of the server: addresses or networks, such as `10.0.0.0/8`. For their requests, limits and logs use the client
    /// address in the forwarded header, and the server requires tokens. The default is none: such headers are ignored.
    #[schemars(length(min = 1))]
    trusted_proxies: Option<Vec<String>>,
    /// The header in which these proxies send the client's address: `x-forwarded-for` or `forwarded`. The default is `x-forwarded-for`. The
    /// proxy must append to it, or replace it.
    forwarded_header: Forwarded,
    /// The maximum rate of requests of a token, or of an address without a token. The default is `5000/s`; the burst is the number of
    /// requests of two seconds.
    #[schemars(extend("format" = "milepost-rate"))]
    rate: Option<String>,
    /// The maximum number of connections; further ones wait. The default is 1000. One address may use half of them, and its further
    /// connections are closed; this machine and trusted proxies may use all. Probes (`/healthz`, `/readyz`) are answered even if all are
    /// used.
    #[schemars(range(min = 1, max = 100_000))]
    connections: Option<usize>,
    /// The maximum number of open streams of state changes. The default is 1000.
    #[schemars(range(min = 1, max = 100_000))]
    streams: Option<usize>,
    /// The maximum number of open streams of a token, or of an address without a token. The default is 32.
    #[schemars(range(min = 1, max = 100_000))]
    streams_per_client: Option<usize>,
    /// The idle time after which a user must sign in again. The default is `30m`.
    #[schemars(extend("format" = "milepost-duration-positive"))]
    session_idle: Option<Humane>,
    /// The maximum duration of a session, after which a user must sign in again. The default is `12h`.
    #[schemars(extend("format" = "milepost-duration-positive"))]
    session_max: Option<Humane>,
    /// The URL by which browsers reach the server, such as `https://jobs.example.org`. Only `oidc` needs it.
    external_url: Option<String>,
    /// Sign-in to the console with the accounts of a company.
    oidc: Option<Oidc>,
}

/// A header in which proxies name the client.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Forwarded {
    #[default]
    XForwardedFor,
    Forwarded,
}

impl Serve {
    /// Returns the trusted proxies of the file; invalid entries were rejected before.
    fn proxies(&self) -> TrustedProxies {
        let header = match self.forwarded_header {
            Forwarded::Forwarded => ForwardedHeader::Forwarded,
            Forwarded::XForwardedFor => ForwardedHeader::XForwardedFor,
        };
        let names = self.trusted_proxies.iter().flatten().map(String::as_str);
        TrustedProxies::parse(names, header).unwrap_or_default()
    }

    /// Returns the passwords of the section.
    pub(super) fn passwords(&self) -> Vec<String> {
        self.oidc.iter().flat_map(Oidc::passwords).collect()
    }

    /// Returns the listen address, if the file has one.
    pub(crate) fn listen(&self) -> Option<SocketAddr> {
        self.listen.as_deref().and_then(|address| address.parse().ok())
    }

    /// Applies the settings of the file, which is in `folder`, to the options.
    pub(crate) fn apply(self, options: &mut Options, folder: &Path) {
        options.access.trusted_proxies = self.proxies();
        if let (Some(cert), Some(key)) = (self.tls_cert, self.tls_key) {
            options.tls = Some(TlsFiles { cert: folder.join(cert), key: folder.join(key) });
        }
        let (access, limits, streams) = (&mut options.access, &mut options.limits, &mut options.streams);
        access.require_tokens |= self.require_tokens;
        access.allowed_hosts.extend(self.allowed_hosts.unwrap_or_default());
        if let (Some(oidc), Some(url)) = (self.oidc, self.external_url) {
            access.oidc = Some(oidc.options(url));
        }
        if let Some(idle) = self.session_idle {
            access.sessions.idle = idle.0;
        }
        if let Some(max) = self.session_max {
            access.sessions.absolute = max.0;
        }
        if let Some(per_second) = self.rate.and_then(|rate| Rate::parse_per_second(&rate).ok()) {
            limits.rate = Some(Rate::new(per_second, twice(per_second)));
        }
        limits.connections = self.connections.unwrap_or(limits.connections);
        streams.streams_max = self.streams.unwrap_or(streams.streams_max);
        streams.streams_per_client_max = self.streams_per_client.unwrap_or(streams.streams_per_client_max);
    }
}

/// Returns the burst size: the requests of two seconds.
fn twice(per_second: f64) -> u32 {
    // Rates are at most 10,000 a second.
    (per_second * 2.0).ceil().max(1.0) as u32
}

pub(super) fn check(serve: Option<&Node>, faults: &mut Faults) {
    let Some(serve) = serve else { return };
    oidc::check(serve, faults);
    if let Some(listen) = serve.get("listen")
        && let Some(Err(why)) = listen.text().map(str::parse::<SocketAddr>)
    {
        let remedy = "write an address and a port, such as \"127.0.0.1:7070\" or \"[::]:7070\"";
        faults.add(listen.span.start, format!("not a listen address: {why}"), remedy);
    }
    for (one, other) in [("tls_cert", "tls_key"), ("tls_key", "tls_cert")] {
        if let (Some(given), None) = (serve.get(one), serve.get(other)) {
            let remedy = "give both: the certificate and its private key";
            faults.add(given.span.start, format!("{one} without {other}"), remedy);
        }
    }
    for proxy in serve.get("trusted_proxies").map(Node::nodes).unwrap_or_default() {
        if let Some(Err(why)) =
            proxy.text().map(|proxy| TrustedProxies::parse([proxy], ForwardedHeader::default()))
        {
            let remedy = "write an address or a network, such as \"10.1.2.3\" or \"10.0.0.0/8\"";
            faults.add(proxy.span.start, why.to_string(), remedy);
        }
    }
    for host in serve.get("allowed_hosts").map(Node::nodes).unwrap_or_default() {
        if host.text().is_some_and(|host| host.is_empty() || host.contains(['/', ':', ' '])) {
            let remedy = "write only the name, such as \"jobs.example.org\", without scheme and port";
            faults.add(host.span.start, "not a host name".to_owned(), remedy);
        }
    }
}
