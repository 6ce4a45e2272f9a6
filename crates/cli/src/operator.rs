//! The operator: the user in whose name changes of this command are audited.

use std::sync::Arc;

use anyhow::{Context, Result};
use milepost_core::audit::Actor;
use milepost_core::port::Store;

/// Returns the store for changes by the operator.
pub(crate) fn acting(store: &dyn Store) -> Result<Arc<dyn Store>> {
    acting_because(store, None)
}

/// Returns the store for changes by the operator with this reason.
pub(crate) fn acting_because(store: &dyn Store, why: Option<&str>) -> Result<Arc<dyn Store>> {
    Ok(store.acting_as(Actor::new(operator()?)?.because(why)?))
}

/// Returns the user and the host that this command runs as.
#[cfg(unix)]
pub(crate) fn operator() -> Result<String> {
    use nix::unistd::{User, gethostname, getuid};

    let uid = getuid();
    let user = User::from_uid(uid).context("cannot determine the user")?;
    let user = user.map_or_else(|| uid.to_string(), |user| user.name);
    let host = gethostname().context("cannot determine the host name")?;
    Ok(format!("{user}@{}", host.to_string_lossy()))
}

/// Returns the user and the host that this command runs as.
#[cfg(not(unix))]
pub(crate) fn operator() -> Result<String> {
    let variable =
        |name| std::env::var(name).with_context(|| format!("cannot determine the user: no {name}"));
    Ok(format!("{}@{}", variable("USERNAME")?, variable("COMPUTERNAME")?))
}
