//! Passwords in the addresses of stores, databases and Redis.

use percent_encoding::percent_decode_str;

/// Returns the URL without its password, whether that is before the host or among the parameters.
///
/// An unescaped password may contain any character, so everything up to the last `@` counts as part of it. If an `@` follows a `?`, the end
/// of the password is ambiguous; then everything that may belong to it is hidden. Hiding too much is better than showing a part of a
/// password.
pub fn masked(url: &str) -> String {
    if let Some((before, _)) = setting_of_password(url) {
        return format!("{before}password=***");
    }
    let (scheme, rest) =
        url.split_once("://").map_or(("", url), |(scheme, rest)| (&url[..scheme.len() + 3], rest));
    let (place, parameters) =
        rest.split_once('?').map_or((rest, None), |(place, parameters)| (place, Some(parameters)));
    if parameters.is_some_and(|parameters| parameters.contains('@')) {
        let user = place.split_once(':').map_or(place.to_owned(), |(user, _)| format!("{user}:***"));
        return format!("{scheme}{user}?***");
    }
    let place = match place.rsplit_once('@').and_then(|(login, host)| Some((login.split_once(':')?.0, host)))
    {
        Some((user, host)) => format!("{user}:***@{host}"),
        None => place.to_owned(),
    };
    let parameters = parameters.map_or_else(String::new, |parameters| {
        let parameters: Vec<String> = parameters.split('&').map(masked_parameter).collect();
        format!("?{}", parameters.join("&"))
    });
    format!("{scheme}{place}{parameters}")
}

/// Returns the passwords of a URL, both as written and decoded: that of the login and those of parameters.
pub fn passwords(url: &str) -> Vec<String> {
    if let Some((_, password)) = setting_of_password(url) {
        return vec![password.to_owned()];
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let of_login = place.rsplit_once('@').and_then(|(login, _)| Some(login.split_once(':')?.1));
    let of_parameters = parameters.split('&').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.to_ascii_lowercase().contains("password").then_some(value)
    });
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    of_login.into_iter().chain(of_parameters).flat_map(|text| [text.to_owned(), decoded(text)]).collect()
}

/// Splits settings such as `host=db password=secret`, which libpq reads and Milepost does not, at the password. The password may contain
/// spaces, so everything after it belongs to it.
fn setting_of_password(text: &str) -> Option<(&str, &str)> {
    const NAME: &str = "password";
    if text.contains("://") {
        return None;
    }
    let at = text.to_ascii_lowercase().find(NAME)?;
    let password = text[at + NAME.len()..].trim_start().strip_prefix('=')?;
    Some((&text[..at], password))
}

fn masked_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("password") => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for url in [
            "postgres://ada:s3cret@db/app",
            "postgres://ada:s3cret@db:5432/app?application_name=x",
            "postgres://ada:p@ss/s3cret@db/app",
            "postgres://db/app?user=ada&password=s3cret",
            "postgres://db/app?sslpassword=s3cret&a=b",
            "mysql://ada:s3cret@db/app",
            "ada:s3cret@db/app",
            "host=db user=ada password=s3cret",
            "host=db PASSWORD = 's3cret and more' user=ada",
        ] {
            let shown = masked(url);
            assert!(!shown.contains("s3cret") && shown.contains("***"), "{shown}");
            assert!(shown.contains("db"), "{shown}");
        }
        for url in [
            "postgres://db:5432/app?user=ada&password=s3cr@t-s3cret",
            "postgres://ada:x@db/app?password=s3cr@t-s3cret",
            "postgres://ada:x?s3cret@db/app",
            "postgres://ada:s3cret?x@db/app?a=b",
            "postgres://ada:s3@s3cret?x@db/app",
            "postgres://db/app?password=s3cret@",
        ] {
            let shown = masked(url);
            assert!(!shown.contains("s3") && shown.contains("***"), "{shown}");
        }
        assert_eq!(masked("postgres://ada:x@db/app"), "postgres://ada:***@db/app");
        assert_eq!(masked("postgres://ada:x@db/app?a=b"), "postgres://ada:***@db/app?a=b");
        assert_eq!(masked("postgres://ada@db/app"), "postgres://ada@db/app");
    }
}
