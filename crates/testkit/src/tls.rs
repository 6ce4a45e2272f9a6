//! Certificates for one test's servers, by an authority that nobody else trusts.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// An authority, and a server's certificate and key for `localhost` that it signed. Removed when dropped.
pub struct Tls {
    folder: TempDir,
}

impl Tls {
    /// Makes them; the key is for the eyes of a system user that the server runs as, if we are root.
    pub fn create(server_user: &str) -> Self {
        let mut authority = CertificateParams::new([]).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("signed");
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(["localhost".to_owned()]).expect("parameters");
        let certificate = certificate.signed_by(&key, &authority).expect("signed");

        let folder = tempfile::Builder::new().prefix("milepost-tls.").tempdir().expect("a temporary folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("others may look");
        let tls = Self { folder };
        fs::write(tls.authority(), authority.pem()).expect("written");
        fs::write(tls.certificate(), certificate.pem()).expect("written");
        fs::write(tls.key(), key.serialize_pem()).expect("written");
        fs::set_permissions(tls.key(), Permissions::from_mode(0o600)).expect("nobody else may look");
        if geteuid().is_root() {
            give_to(server_user, &tls.key());
        }
        tls
    }

    /// The authority's certificate, which clients have to trust.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// The server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    /// The server's key.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }
}

fn give_to(user: &str, file: &Path) {
    let user = User::from_name(user).expect("users can be looked up").expect("there is such a user");
    chown(file, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("given");
}
