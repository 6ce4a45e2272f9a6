//! TLS: the certificate and its key, reloaded when the files change.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Interval of the check for changed files.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Maximum size of such a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The files with a certificate and its key, in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and its intermediate certificates.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Files that cannot be used for TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read, or that contains no certificate or key.
    #[error("{file} cannot be used for TLS: {why}")]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The key does not belong to the certificate.
    #[error("the certificate {cert} and the key {key} do not match: {why}")]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// The reason.
        why: rustls::Error,
    },
}

/// The current TLS configuration.
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

    /// Returns the acceptor for the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// Reloads the files whenever they change. If the new files cannot be used, logs the error and keeps the previous
    /// configuration.
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
                    tracing::info!(cert = %self.files.cert.display(), "the certificate was reloaded");
                }
                Err(error) => {
                    tracing::error!(%error, "the new certificate cannot be used; the previous one remains in use");
                }
            }
        }
    }
}

impl TlsFiles {
    /// Checks whether the files can be used for TLS.
    ///
    /// # Errors
    /// Returns the reason why they cannot be used.
    pub fn check(&self) -> Result<(), TlsError> {
        config(self).map(drop)
    }

    fn changed_at(&self) -> [Option<SystemTime>; 2] {
        [&self.cert, &self.key].map(|file| file.metadata().and_then(|file| file.modified()).ok())
    }
}

fn config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let TlsFiles { cert, key } = files;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(cert)?)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable(cert, "it contains no certificate"));
    }
    let secret =
        PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| unusable(key, error.to_string()))?;
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

/// Reads a file, but never an endless device.
fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => {
            Err(unusable(path, format!("it has more than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(unusable(path, error.to_string())),
    }
}

fn unusable(file: &Path, why: impl Into<String>) -> TlsError {
    TlsError::File { file: file.to_owned(), why: why.into() }
}
