//! Protection of a store's password against other processes of this machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use milepost_executors::exec::STORE_VARIABLE;

use crate::store;

const STORE_OPTION: &str = "--store";

/// Executes this program again in the same process if `--store` contains a password, because every user of the machine can read a
/// process's arguments. The new program gets the address in `MILEPOST_STORE`. Continues if this is not possible.
pub(crate) fn hide_arguments() {
    let mut arguments = std::env::args_os();
    let Some(name) = arguments.next() else { return };
    let Some((address, others)) = without_password(arguments.collect()) else { return };
    let Ok(program) = std::env::current_exe() else { return };
    let mut again = Command::new(program);
    let error = again.arg0(name).args(others).env(STORE_VARIABLE, address).exec();
    tracing::warn!(%error, "the password of --store is visible to other users of this machine");
}

/// Prevents other processes of the same user, such as the programs of jobs, from reading the environment and the memory of this process.
/// It also disables core dumps.
#[cfg(target_os = "linux")]
pub(crate) fn hide_memory() {
    let hidden = nix::sys::prctl::set_dumpable(false);
    if let Err(error) = hidden {
        tracing::warn!(%error, "programs of jobs can read the environment of this process");
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn hide_memory() {}

/// Warns of a file with confidential contents that other users can read or write.
pub(crate) fn warn_of_readers(path: &Path) {
    let mode = path.metadata().map_or(0, |file| file.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let mode = format!("{mode:03o}");
        tracing::warn!(file = %path.display(), mode, "other users of this machine can use the file; run chmod 600 unless they must");
    }
}

/// Returns the address of `--store` if it contains a password, and the other arguments.
fn without_password(arguments: Vec<OsString>) -> Option<(OsString, Vec<OsString>)> {
    let mut others = Vec::with_capacity(arguments.len());
    let (mut address, mut rest) = (None, arguments.into_iter());
    while let Some(argument) = rest.next() {
        let given = argument.to_str().and_then(|text| text.strip_prefix(STORE_OPTION)).map(str::to_owned);
        match given.as_deref() {
            Some("") => address = rest.next(),
            Some(value) if value.starts_with('=') => address = Some(value[1..].into()),
            _ => {
                let ends = argument == OsStr::new("--");
                others.push(argument);
                if ends {
                    others.extend(rest.by_ref());
                }
            }
        }
    }
    let address = address?;
    let has_password =
        address.to_str().is_some_and(|url| store::passwords(url).iter().any(|it| !it.is_empty()));
    has_password.then_some((address, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(arguments: &str) -> Option<(String, String)> {
        let (address, others) = without_password(arguments.split(' ').map(OsString::from).collect())?;
        let others: Vec<_> = others.iter().map(|other| other.to_str().unwrap()).collect();
        Some((address.into_string().unwrap(), others.join(" ")))
    }

    #[test]
    fn a_password_is_taken_from_the_arguments_and_nothing_else_is() {
        let url = "postgres://ada:s3cret@db/app";
        let taken = |others: &str| Some((url.to_owned(), others.to_owned()));
        assert_eq!(split(&format!("--store {url} work --config a.toml")), taken("work --config a.toml"));
        assert_eq!(split(&format!("work --store={url}")), taken("work"));
        assert_eq!(split("work --store postgres://ada@db/app"), None);
        assert_eq!(split("work --store sqlite:jobs.db"), None);
        assert_eq!(split("work --store-wait 5s"), None);
        assert_eq!(split(&format!("enqueue k -- --store {url}")), None);
        let parameter = "postgres://db/app?user=ada&password=s3cret";
        assert_eq!(
            split(&format!("work --store {parameter}")),
            Some((parameter.to_owned(), "work".to_owned()))
        );
    }
}
