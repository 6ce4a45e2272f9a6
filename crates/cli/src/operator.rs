//! Who repairs, or moves a store.

use anyhow::{Context, Result};

/// The user and the host that this command runs as, for the table `audit`.
#[cfg(unix)]
pub(crate) fn operator() -> Result<String> {
    use nix::unistd::{User, gethostname, getuid};

    let uid = getuid();
    let user = User::from_uid(uid).context("cannot tell who this is")?;
    let user = user.map_or_else(|| uid.to_string(), |user| user.name);
    let host = gethostname().context("cannot tell this host's name")?;
    Ok(format!("{user}@{}", host.to_string_lossy()))
}

/// The user and the host that this command runs as, for the table `audit`.
#[cfg(not(unix))]
pub(crate) fn operator() -> Result<String> {
    let variable = |name| std::env::var(name).with_context(|| format!("cannot tell who this is: no {name}"));
    Ok(format!("{}@{}", variable("USERNAME")?, variable("COMPUTERNAME")?))
}
