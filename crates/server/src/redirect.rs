//! Redirect targets: only paths of this server.

/// Returns the path if it is a path of this server, and `/` otherwise. Browsers remove tabs and line ends, and read `\` as `/`.
pub(crate) fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('\\')
        && path.bytes().all(|byte| byte.is_ascii_graphic());
    if is_own { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_server() {
        for own in ["/", "/jobs", "/jobs?state=failed&kind=a%20b", "/jobs/1#end"] {
            assert_eq!(own_path(own), own);
        }
        for foreign in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "jobs",
            "/a\r\nb",
            "/\tb",
            "/\t/evil.example",
            "/ü",
        ] {
            assert_eq!(own_path(foreign), "/", "{foreign}");
        }
    }
}
