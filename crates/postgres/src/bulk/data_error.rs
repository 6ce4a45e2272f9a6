//! Errors of statements that are about the data of one target.

/// Returns code and message of an error that is about data: class 22 or 23, raised by a trigger or a function, or refused by
/// one of Milepost's own functions.
pub(super) fn data_error(error: &sqlx::Error) -> Option<(String, String)> {
    let error = error.as_database_error()?;
    let code = error.code()?;
    let about_data = ["22", "23", "P0001", "MP001", "MP015", "MP016", "MP017"]
        .iter()
        .any(|prefix| code.starts_with(prefix));
    about_data.then(|| (code.into_owned(), error.message().to_owned()))
}
