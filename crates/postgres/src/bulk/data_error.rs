//! Errors of statements that are about the data of one target.

/// Classes and codes (appendix A of PostgreSQL's manual) that are not about data: the connection, the transaction, the session, its rights, the
/// statement, the server, and other servers. All others can depend on the values of a target. A function or a trigger can raise any of them
/// with `errcode`, languages other than SQL raise 38 and 39, and C functions XX000. If every target fails with one, the error budget ends the run.
const OTHERS: [&str; 21] = [
    "03", "08", "0B", "25", "26", "28", "2D", "3D", "3F", "40", "42", "53", "55006", "55P03", "57", "58",
    "72", "F0", "HV", "XX001", "XX002",
];

/// Returns code and message of an error that is about data. An error of another class, such as a missing table, fails the same for every target.
pub(super) fn data_error(error: &sqlx::Error) -> Option<(String, String)> {
    let error = error.as_database_error()?;
    let code = error.code()?;
    is_about_data(&code).then(|| (code.into_owned(), error.message().to_owned()))
}

fn is_about_data(code: &str) -> bool {
    !OTHERS.iter().any(|others| code.starts_with(*others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_about_data_if_it_depends_on_the_values_of_a_target() {
        for code in [
            "22003", "23505", "21000", "44000", "54000", "54001", "P0001", "P0002", "MP001", "U0001",
            "99999", "AB123", "38000", "39004", "27000", "2F002", "20000", "3B001", "0F001", "55000",
            "0A000", "02000", "XX000",
        ] {
            assert!(is_about_data(code), "{code}");
        }
        for code in [
            "42P01", "40001", "40P01", "25P02", "08006", "53100", "55P03", "57014", "58030", "XX001",
            "55006", "F0000", "HV00N",
        ] {
            assert!(!is_about_data(code), "{code}");
        }
    }
}
