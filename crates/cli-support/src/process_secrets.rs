//! Protection of passwords against other processes of this machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use milepost_executors::exec::{REDIS_VARIABLE, STORE_VARIABLE};

use crate::passwords::passwords;

/// Options whose value can contain a password, and the environment variables that replace them.
const OPTIONS: [(&str, &str); 2] = [("--store", STORE_VARIABLE), ("--redis", REDIS_VARIABLE)];

/// Environment variables with their values.
type Variables = Vec<(&'static str, OsString)>;

/// Executes this program again in the same process if an option contains a password, because every user of the machine can read a process's
/// arguments. The new program gets the values of these options in its environment. Continues if this is not possible.
pub fn hide_arguments() {
    let mut arguments = std::env::args_os();
    let Some(name) = arguments.next() else { return };
    let Some((values, others)) = without_passwords(arguments.collect()) else { return };
    let Ok(program) = std::env::current_exe() else { return };
    let mut again = Command::new(program);
    let error = again.arg0(name).args(others).envs(values).exec();
    tracing::warn!(%error, "the passwords of the arguments are visible to other users of this machine");
}

/// Prevents other processes of the same user, such as the programs of jobs, from reading the environment and the memory of this process.
/// It also disables core dumps.
#[cfg(target_os = "linux")]
pub fn hide_memory() {
    let hidden = nix::sys::prctl::set_dumpable(false);
    if let Err(error) = hidden {
        tracing::warn!(%error, "programs of jobs can read the environment of this process");
    }
}

#[cfg(not(target_os = "linux"))]
pub fn hide_memory() {}

/// Warns of a file with confidential contents that other users can read or write.
pub fn warn_of_readers(path: &Path) {
    let mode = path.metadata().map_or(0, |file| file.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let mode = format!("{mode:03o}");
        tracing::warn!(file = %path.display(), mode, "other users of this machine can use the file; run chmod 600 unless they must");
    }
}

/// Returns the values of [`OPTIONS`] by their variables, if one contains a password, and the other arguments.
fn without_passwords(arguments: Vec<OsString>) -> Option<(Variables, Vec<OsString>)> {
    let mut others = Vec::with_capacity(arguments.len());
    let (mut values, mut rest) = (Vec::new(), arguments.into_iter());
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        let option =
            OPTIONS.iter().find_map(|(option, variable)| Some((text.strip_prefix(option)?, *variable)));
        match option {
            Some(("", variable)) => values.extend(rest.next().map(|value| (variable, value))),
            Some((value, variable)) if value.starts_with('=') => values.push((variable, value[1..].into())),
            _ => {
                let ends = argument == OsStr::new("--");
                others.push(argument);
                if ends {
                    others.extend(rest.by_ref());
                }
            }
        }
    }
    values.iter().any(|(_, value)| has_password(value)).then_some((values, others))
}

fn has_password(value: &OsStr) -> bool {
    let has_password = |url: &str| passwords(url).iter().any(|password| !password.is_empty());
    value.to_str().is_some_and(|url| has_password(url) || url.starts_with("redis") && url.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(arguments: &str) -> Option<(String, String)> {
        let (values, others) = without_passwords(arguments.split(' ').map(OsString::from).collect())?;
        let values: Vec<_> = values
            .iter()
            .map(|(variable, value)| format!("{variable}={}", value.to_str().unwrap()))
            .collect();
        let others: Vec<_> = others.iter().map(|other| other.to_str().unwrap()).collect();
        Some((values.join(" "), others.join(" ")))
    }

    #[test]
    fn a_password_is_taken_from_the_arguments_and_nothing_else_is() {
        let url = "postgres://ada:s3cret@db/app";
        let taken = |others: &str| Some((format!("MILEPOST_STORE={url}"), others.to_owned()));
        assert_eq!(split(&format!("--store {url} work --config a.toml")), taken("work --config a.toml"));
        assert_eq!(split(&format!("work --store={url}")), taken("work"));
        assert_eq!(split("work --store postgres://ada@db/app"), None);
        assert_eq!(split("work --store sqlite:jobs.db"), None);
        assert_eq!(split("work --store-wait 5s"), None);
        assert_eq!(split("work --redis redis://cache/0 --redis-prefix a@b"), None);
        assert_eq!(split(&format!("enqueue k -- --store {url}")), None);
        let parameter = "postgres://db/app?user=ada&password=s3cret";
        assert_eq!(
            split(&format!("work --store {parameter}")),
            Some((format!("MILEPOST_STORE={parameter}"), "work".to_owned()))
        );
        assert_eq!(
            split("work --redis redis://:s3cret@cache/0 --store sqlite:jobs.db --redis-prefix p"),
            Some((
                "MILEPOST_REDIS=redis://:s3cret@cache/0 MILEPOST_STORE=sqlite:jobs.db".to_owned(),
                "work --redis-prefix p".to_owned()
            ))
        );
    }
}
