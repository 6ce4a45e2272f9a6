//! Errors of statements that are about the data of one target.

/// Classes of the standard and of PostgreSQL that are about data: wrong or too many values, violated constraints and views with a check, limits
/// of the size of a row or an index entry, and errors that functions raise.
const ABOUT_DATA: [&str; 6] = ["21", "22", "23", "44", "54", "P0"];
/// All other classes of PostgreSQL (appendix A of its manual). Classes that it does not have are raised by functions of users, and by
/// Milepost's own, such as `MP001`.
const OTHERS: [&str; 38] = [
    "00", "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "24", "25", "26",
    "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "53", "55", "57", "58",
    "72", "F0", "HV", "XX",
];

/// Returns code and message of an error that is about data. An error of another class, such as a missing table, fails the same for every target.
pub(super) fn data_error(error: &sqlx::Error) -> Option<(String, String)> {
    let error = error.as_database_error()?;
    let code = error.code()?;
    is_about_data(&code).then(|| (code.into_owned(), error.message().to_owned()))
}

fn is_about_data(code: &str) -> bool {
    let in_class = |class: &&str| code.starts_with(*class);
    ABOUT_DATA.iter().any(in_class) || !OTHERS.iter().any(in_class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_about_data_if_it_depends_on_the_values_of_a_target() {
        for code in [
            "22003", "23505", "21000", "44000", "54000", "54001", "P0001", "P0002", "MP001", "U0001",
            "99999", "AB123",
        ] {
            assert!(is_about_data(code), "{code}");
        }
        for code in [
            "42P01", "40001", "40P01", "25P02", "08006", "53100", "55P03", "57014", "58030", "XX000",
            "0A000", "F0000",
        ] {
            assert!(!is_about_data(code), "{code}");
        }
    }
}
