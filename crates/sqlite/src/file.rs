//! The database file: how connections to it are opened.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::bulk::add_key_function;
use crate::error::{Failure, Locked, is_busy};
use crate::lock_wait::{Patience, wait_politely};
use crate::wal;

/// The number of prepared statements that each connection caches.
const STATEMENTS: usize = 96;
/// Pages of 4 KiB that the writer keeps in memory: 64 MiB.
const WRITER_CACHE_KIB: i64 = 64 * 1024;
/// How many symbolic links are followed to a file that is missing, as on Linux.
#[cfg(unix)]
const LINKS_MAX: usize = 40;

/// Opens the writing connection. Creates the file if it is missing. Does not change a file without Milepost's tables, because the caller
/// may only want to read it.
pub(crate) fn open_writer(path: &Path, busy_timeout: Duration) -> StoreResult<(Connection, Patience)> {
    check_names(path)?;
    let patience = Patience::until(Instant::now() + busy_timeout);
    let conn = patiently(path, &patience, || {
        let conn = try_writer(path, &patience)?;
        if conn.query_row(sql!("is_ours"), (), |row| row.get(0))? {
            log_ahead(&conn)?;
        }
        Ok(conn)
    })?;
    Ok((conn, patience))
}

/// Refuses a file that other processes may use with another write-ahead log, so that processes do not see each other's commits, and destroy the file:
/// SQLite derives the name of the log from the name of the file.
#[cfg(unix)]
fn check_names(path: &Path) -> StoreResult<()> {
    use std::os::unix::fs::MetadataExt;

    let words = match std::fs::metadata(path) {
        Ok(file) if file.is_file() && file.nlink() > 1 => format!(
            "the file has {} names (hard links), each of which would get its own write-ahead log; delete the other names, or open a copy",
            file.nlink()
        ),
        Ok(file) if file.is_file() && is_mounted(path) => "the file is mounted by itself (a volume of one file), so that its write-ahead log would not be beside it; \
             mount its folder"
            .to_owned(),
        Ok(file) if file.len() > 0 || !file.is_file() => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Ok(()),
        // A process that still uses a deleted file would destroy the new one at its end.
        _ if has_log(path) => "the file is missing or empty, but its write-ahead log (-wal) has data: it was deleted, perhaps while a process used it; stop all \
             processes that use it, restore a backup, or move the -wal and -shm files away to begin with an empty store"
            .to_owned(),
        _ => return Ok(()),
    };
    let place = path.display().to_string();
    Err(StoreError::Unavailable { place, cause: Box::new(io::Error::other(words)) })
}

#[cfg(not(unix))]
fn check_names(_: &Path) -> StoreResult<()> {
    Ok(())
}

/// Returns whether the file has a write-ahead log with frames.
#[cfg(unix)]
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Returns whether the file itself is a mount point, as a volume of a container can be. Only Linux tells.
#[cfg(unix)]
fn is_mounted(path: &Path) -> bool {
    let (Ok(path), Ok(mounts)) = (path.canonicalize(), std::fs::read_to_string("/proc/self/mountinfo"))
    else {
        return false;
    };
    // The fifth field is the mount point, in which some characters are octal escapes.
    let path = path
        .to_string_lossy()
        .replace('\\', "\\134")
        .replace(' ', "\\040")
        .replace('\t', "\\011")
        .replace('\n', "\\012");
    mounts.lines().any(|mount| mount.split(' ').nth(4) == Some(path.as_str()))
}

/// The file that was opened. Its name can lead to another one later: a backup that was restored while a process worked.
#[derive(Clone, Debug)]
pub(crate) struct OpenedFile {
    path: PathBuf,
    /// Device and inode; none if there is no file, as for a database in memory.
    identity: Identity,
    /// The write-ahead log and its index. SQLite keeps them as long as a connection is open. So if one is missing, it was deleted by an
    /// operator: to copy a backup over the file, for example, whose device and inode then stay the same. The commits of processes that use
    /// different ones are lost.
    beside: [Beside; 2],
}

impl OpenedFile {
    /// Returns the file that a connection has opened by this name. The connection knows only the path behind symbolic links, which can be changed later.
    pub(crate) fn of(conn: &Connection, name: &Path) -> Self {
        let path = conn.path().unwrap_or_default();
        Self {
            identity: identity(Path::new(path)).ok().flatten(),
            path: std::path::absolute(name).unwrap_or_else(|_| path.into()),
            beside: ["-wal", "-shm"]
                .map(|end| Beside { path: format!("{path}{end}").into(), identity: Arc::default() }),
        }
    }

    /// Returns an error if other processes open another file: this one was replaced or deleted.
    pub(crate) fn replaced(&self) -> Option<rusqlite::Error> {
        if self.identity.is_none()
            || !is_another(self.identity, identity(&self.path)) && !self.beside.iter().any(Beside::is_another)
        {
            return None;
        }
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY_DBMOVED);
        let words = "the file, its -wal or its -shm was replaced or deleted while this process used it; restart the process";
        Some(rusqlite::Error::SqliteFailure(code, Some(words.to_owned())))
    }
}

/// A file beside the database.
#[derive(Clone, Debug)]
struct Beside {
    path: PathBuf,
    /// Its device and inode, once there is one.
    identity: Arc<OnceLock<(u64, u64)>>,
}

impl Beside {
    fn is_another(&self) -> bool {
        let found = identity(&self.path);
        if let (None, Ok(Some(first))) = (self.identity.get(), &found) {
            // Another clone may have noted the same.
            let _ = self.identity.set(*first);
        }
        self.identity.get().is_some_and(|first| is_another(Some(*first), found))
    }
}

/// Device and inode of a file.
type Identity = Option<(u64, u64)>;

/// Returns whether a name no longer leads to the opened file. While the folder cannot be searched, its permission was taken away for example, that is
/// not known, and commits are in the opened file.
fn is_another(opened: Identity, found: io::Result<Identity>) -> bool {
    match found {
        Ok(found) => found != opened,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;

    let file = std::fs::metadata(path)?;
    Ok(file.is_file().then(|| (file.dev(), file.ino())))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> io::Result<Identity> {
    Ok(None)
}

/// Switches the file to WAL mode, if necessary. The mode is stored in the file.
pub(crate) fn turn_to_wal(path: &Path, busy_timeout: Duration) -> StoreResult<()> {
    let patience = Patience::until(Instant::now() + busy_timeout);
    patiently(path, &patience, || log_ahead(&try_writer(path, &patience)?))
}

fn log_ahead(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
}

/// Retries while the file is busy, because SQLite can refuse the switch to WAL mode without calling the busy handler.
fn patiently<T>(
    path: &Path,
    patience: &Patience,
    attempt: impl Fn() -> rusqlite::Result<T>,
) -> StoreResult<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && !patience.is_over() => thread::sleep(Duration::from_millis(1)),
            outcome => return outcome.map_err(|error| cannot_open(path, error, begun.elapsed())),
        }
    }
}

/// Creates a missing file so that no other user can read it, because payloads can be confidential. SQLite gives the files of the log the
/// same mode, and reports problems with the path.
///
/// An existing file is never opened: closing any descriptor of a file releases the locks that this process has on it, also those of its
/// connections. Then another process would delete the write-ahead log that they use (<https://sqlite.org/howtocorrupt.html>, 2.2).
#[cfg(unix)]
fn create_private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt;

    let mut file = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&file) else { break };
        file = file.parent().unwrap_or(Path::new("")).join(target);
    }
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
}

#[cfg(not(unix))]
fn create_private(_: &Path) {}

fn try_writer(path: &Path, patience: &Patience) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    create_private(path);
    let mut conn = Connection::open_with_flags(path, flags)?;
    if conn.is_readonly(rusqlite::MAIN_DB)? {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
        return Err(rusqlite::Error::SqliteFailure(code, None));
    }
    wait_politely(&mut conn, patience.clone())?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update_and_check(None, "journal_size_limit", wal::LOG_BYTES_MAX.cast_signed(), |_| Ok(()))?;
    prepare_once(&conn)?;
    add_key_function(&conn)?;
    Ok(conn)
}

/// Makes a connection prepare each statement once. Without the guarantee that plans do not depend on bound values, SQLite plans a statement again
/// whenever another value is bound to its `LIMIT`, or compared with a column of a partial index. It then uses neither the value of `LIKE :p` nor a partial
/// index that only the value of a parameter makes usable, also in statements of users.
fn prepare_once(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}

/// Opens a connection that can only read.
pub(crate) fn open_reader(path: &Path, busy_timeout: Duration) -> rusqlite::Result<(Connection, Patience)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    let patience = Patience::until(Instant::now() + busy_timeout);
    wait_politely(&mut conn, patience.clone())?;
    conn.pragma_update(None, "temp_store", "memory")?;
    prepare_once(&conn)?;
    add_key_function(&conn)?;
    Ok((conn, patience))
}

fn cannot_open(path: &Path, error: rusqlite::Error, waited: Duration) -> StoreError {
    let place = path.display().to_string();
    if is_busy(&error) {
        return StoreError::Unavailable { place, cause: Box::new(Locked { waited, source: error }) };
    }
    match why_unusable(path, &error) {
        Some(why) => StoreError::Unavailable { place, cause: Box::new(why) },
        None => Failure::Sql(error).at("open", &place),
    }
}

/// Returns the operating system's error. SQLite reports only that it cannot open or write the file.
fn why_unusable(path: &Path, error: &rusqlite::Error) -> Option<io::Error> {
    let mute = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    );
    if !mute {
        return None;
    }
    match std::fs::metadata(path) {
        Ok(file) => access_error(path, file.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            OpenOptions::new().write(true).create_new(true).open(path).err()
        }
        Err(error) => Some(error),
    }
}

/// Returns the error of opening an existing file for writing, without opening it, for the reason that [`create_private`] describes.
#[cfg(unix)]
fn access_error(path: &Path, is_folder: bool) -> Option<io::Error> {
    use rustix::fs::{Access, access};

    let error = if is_folder {
        Some(rustix::io::Errno::ISDIR)
    } else {
        access(path, Access::READ_OK | Access::WRITE_OK).err()
    };
    error.map(io::Error::from)
}

#[cfg(not(unix))]
fn access_error(path: &Path, _: bool) -> Option<io::Error> {
    OpenOptions::new().read(true).write(true).open(path).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_folder_cannot_be_searched_counts_as_the_same() {
        let opened = Some((1, 2));
        assert!(!is_another(opened, Ok(opened)));
        assert!(is_another(opened, Ok(Some((1, 3)))));
        assert!(is_another(opened, Ok(None)), "a folder has its name");
        assert!(is_another(opened, Err(io::ErrorKind::NotFound.into())));
        assert!(!is_another(opened, Err(io::ErrorKind::PermissionDenied.into())));
    }
}
