//! TLS certificates for the servers of one test, signed by a private certificate authority.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::unistd::{User, geteuid};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// A certificate authority, and a certificate and key for `localhost` that it signed. The files are deleted when this is dropped.
pub struct Tls {
    folder: TempDir,
}

impl Tls {
    /// Creates the files. If the process runs as root, the key is readable only by the system user that runs the server.
    pub fn create(server_user: &str) -> Self {
        let mut authority = CertificateParams::new([]).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("signed");
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(["localhost".to_owned()]).expect("parameters");
        let certificate = certificate.signed_by(&key, &authority).expect("signed");

        let folder = tempfile::Builder::new()
            .prefix("milepost-tls.")
            .tempdir()
            .expect("cannot create a temporary folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .expect("cannot set the permissions of the folder");
        let tls = Self { folder };
        fs::write(tls.authority(), authority.pem()).expect("written");
        fs::write(tls.certificate(), certificate.pem()).expect("written");
        fs::write(tls.key(), key.serialize_pem()).expect("written");
        fs::set_permissions(tls.key(), Permissions::from_mode(0o600))
            .expect("cannot set the permissions of the key");
        if geteuid().is_root() {
            give_to(server_user, &tls.key());
        }
        tls
    }

    /// Returns the authority's certificate, which clients must trust.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Returns the server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    /// Returns the server's key.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }
}

fn give_to(user: &str, file: &Path) {
    let user = User::from_name(user).expect("cannot look up users").expect("the user does not exist");
    chown(file, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("given");
}
