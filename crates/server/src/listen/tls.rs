//! TLS: the certificate and its key, read anew when the files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether the files have changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where a certificate and its key are, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and an authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Files that TLS cannot be spoken with.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read, or holds nothing of use.
    #[error("{file} cannot be used for TLS: {why}")]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The key is not that of the certificate.
    #[error("{cert} and {key} do not go together: {why}")]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// What is wrong with them.
        why: rustls::Error,
    },
}

/// TLS as it is spoken now.
#[derive(Clone)]
pub(crate) struct Tls {
    files: TlsFiles,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let config = Arc::new(RwLock::new(Arc::new(config(&files)?)));
        Ok(Self { files, config })
    }

    /// For the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// Reads the files whenever they have changed. New ones that cannot be used are told, and those before go on.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        let mut seen = self.files.changed_at();
        while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            let now = self.files.changed_at();
            if now == seen {
                continue;
            }
            seen = now;
            match config(&self.files) {
                Ok(config) => {
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                    tracing::info!(cert = %self.files.cert.display(), "the certificate was read anew");
                }
                Err(error) => tracing::error!(%error, "the certificate before goes on"),
            }
        }
    }
}

impl TlsFiles {
    /// Whether TLS can be spoken with them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<(), TlsError> {
        config(self).map(drop)
    }

    fn changed_at(&self) -> [Option<SystemTime>; 2] {
        [&self.cert, &self.key].map(|file| file.metadata().and_then(|file| file.modified()).ok())
    }
}

fn config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let TlsFiles { cert, key } = files;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable(cert, "it holds no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pair = |why| TlsError::Pair { cert: cert.clone(), key: key.clone(), why };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn unusable(file: &Path, why: impl Into<String>) -> TlsError {
    TlsError::File { file: file.to_owned(), why: why.into() }
}
