//! String formats of the file that the schema only names: their checks and remedies.

use std::path::{Path, PathBuf};

use jiff::civil::Time;
use milepost_cli_support::parsers;
use milepost_cli_support::store::StoreAddress;
use milepost_core::limit::Rate;
use milepost_executors::http::check_url;

/// The reason why a text does not have the required format.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The required format that the text does not have.
    pub(super) what: &'static str,
    /// The details; may repeat a part of the text.
    pub(super) why: String,
}

/// A format, by its name in the schema under `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Duration,
    PositiveDuration,
    Keep,
    Rate,
    Store,
    Postgres,
    Redis,
    Url,
    Program,
    Folder,
    Time,
    Argument,
    Variable,
}

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "milepost-duration" => Self::Duration,
            "milepost-duration-positive" => Self::PositiveDuration,
            "milepost-keep" => Self::Keep,
            "milepost-rate" => Self::Rate,
            "milepost-store" => Self::Store,
            "milepost-postgres" => Self::Postgres,
            "milepost-redis" => Self::Redis,
            "milepost-url" => Self::Url,
            "milepost-program" => Self::Program,
            "milepost-folder" => Self::Folder,
            "milepost-time" => Self::Time,
            "milepost-argument" => Self::Argument,
            "milepost-variable" => Self::Variable,
            _ => return None,
        })
    }

    /// Returns an instruction for correcting the text.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Duration | Self::PositiveDuration => {
                "write a duration in quotes, such as \"30s\", \"10m\" or \"1h 30m\""
            }
            Self::Keep => "write a duration in quotes, such as \"7d\", or \"forever\"",
            Self::Rate => "write a rate in quotes, such as \"10/s\", \"100/m\" or \"7/15m\"",
            Self::Store => {
                "write the path of a SQLite file, or postgres://USER:PASSWORD@HOST/DATABASE; keep the password \
                 in the environment: postgres://app:${DB_PASSWORD}@db.internal/app"
            }
            Self::Postgres => {
                "write postgres://USER:PASSWORD@HOST/DATABASE; keep the password in the environment: \
                 postgres://app:${SHOP_PASSWORD}@db.shop.internal/shop"
            }
            Self::Redis => {
                "write redis://HOST:PORT, or rediss://… for TLS; keep the password in the environment: \
                 redis://:${REDIS_PASSWORD}@cache.internal"
            }
            Self::Url => "write a URL such as \"https://mail.internal/send\"",
            Self::Program => {
                "write the name of a program on PATH, or its path; arguments go into args = [\"…\"], and no shell \
                 is used"
            }
            Self::Folder => "write the path of an existing folder",
            Self::Time => "write a time of day in quotes, such as \"22:00\"; midnight is \"00:00\"",
            Self::Argument => "remove the NUL character (\\u0000); a process cannot receive one",
            Self::Variable => "write a name such as MAIL_HOST, without = and NUL characters",
        }
    }

    /// Checks whether a text of a file in `folder` has this format.
    pub(super) fn check(self, text: &str, folder: &Path) -> Result<(), Refused> {
        let refused = |what, why| Err(Refused { what, why });
        match self {
            Self::Duration => match parsers::duration(text) {
                Ok(_) => Ok(()),
                Err(why) => refused("not a duration", why),
            },
            Self::PositiveDuration => match parsers::positive_duration(text) {
                Ok(_) => Ok(()),
                Err(why) => refused("not a valid duration here", why),
            },
            Self::Keep => match parsers::keep(text) {
                Ok(_) => Ok(()),
                Err(why) => refused("not a period", why),
            },
            Self::Rate => match Rate::parse_per_second(text) {
                Ok(_) => Ok(()),
                Err(why) => refused("not a rate", why.to_string()),
            },
            Self::Store => match store(text, folder) {
                Ok(_) => Ok(()),
                Err(why) => refused("not a store address", why),
            },
            Self::Postgres => match milepost_postgres::check_url(text) {
                Ok(()) => Ok(()),
                Err(why) => refused("not a PostgreSQL database", why),
            },
            Self::Redis => match milepost_redis::check_url(text) {
                Ok(()) => Ok(()),
                Err(why) => refused("not a Redis address", why.to_string()),
            },
            Self::Url => match check_url(text) {
                Ok(_) => Ok(()),
                Err(why) => refused("not a valid URL here", why.to_string()),
            },
            Self::Program => match program(text, folder) {
                Some(_) => Ok(()),
                None => {
                    refused("not a program that can be run", "there is no such executable file".to_owned())
                }
            },
            Self::Folder => match folder.join(text).is_dir() {
                true => Ok(()),
                false => refused("not a folder", "it does not exist".to_owned()),
            },
            Self::Time => match text.parse::<Time>() {
                Ok(_) => Ok(()),
                Err(why) => refused("not a time of day", why.to_string()),
            },
            Self::Argument => match text.contains('\0') {
                true => {
                    refused("not a text that a program can receive", "it contains a NUL character".to_owned())
                }
                false => Ok(()),
            },
            Self::Variable => match text.is_empty() || text.contains(['=', '\0']) {
                true => refused(
                    "not a name of an environment variable",
                    "it is empty, or contains = or NUL".to_owned(),
                ),
                false => Ok(()),
            },
        }
    }
}

/// Parses the store of a file in `folder`: a URL, or the path of a SQLite file.
pub(super) fn store(text: &str, folder: &Path) -> Result<StoreAddress, String> {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    let is_path = scheme.is_none_or(|scheme| !scheme.chars().all(|c| c.is_ascii_alphanumeric()));
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.contains('\0') {
        return Err("it contains a NUL character".to_owned());
    }
    match if is_path { Ok(StoreAddress::Sqlite(text.into())) } else { text.parse() }? {
        StoreAddress::Sqlite(path) => Ok(StoreAddress::Sqlite(folder.join(path))),
        address @ StoreAddress::Postgres(_) => Ok(address),
    }
}

/// Finds the program's file: a path relative to `folder`, or a name found in `PATH`.
pub(super) fn program(text: &str, folder: &Path) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    if text.contains('/') {
        let path = std::path::absolute(folder.join(text)).ok()?;
        return is_executable(&path).then_some(path);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(text)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_an_address_or_a_path_seen_from_the_file() {
        let folder = Path::new("/etc/milepost");
        let file = |path: &str| Ok(StoreAddress::Sqlite(path.into()));
        assert_eq!(store("jobs.db", folder), file("/etc/milepost/jobs.db"));
        assert_eq!(store("sqlite:/var/jobs.db", folder), file("/var/jobs.db"));
        let url = "postgres://ada:s3cret@db/app";
        assert_eq!(store(url, folder), Ok(StoreAddress::Postgres(url.to_owned())));
        for bad in ["", "mysql://ada:s3cret@db/app", "sqlite:"] {
            assert!(!store(bad, folder).unwrap_err().contains("s3cret"));
        }
    }

    #[test]
    fn a_program_is_looked_up_on_the_path_or_seen_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(program("sh", folder.path()).unwrap().ends_with("sh"));
        assert!(program("/bin/sh", folder.path()).is_some());
        assert_eq!(program("no-such-program", folder.path()), None);
        std::fs::write(folder.path().join("send"), "").unwrap();
        assert_eq!(program("./send", folder.path()), None, "it is not executable");
    }
}
