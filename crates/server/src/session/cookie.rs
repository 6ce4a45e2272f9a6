//! The cookies of the console: the session id, the message for the next page, and the sign-in in progress.

use std::time::Duration;

use axum::http::HeaderValue;

/// The name and attributes of a cookie.
///
/// If browsers reach the server by HTTPS, the name has the prefix `__Host-`, so that no other host, path or plain connection can
/// set it. A server on the loopback address uses HTTP; there the prefix is omitted, since not all browsers accept it from
/// `http://localhost`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookie {
    name: &'static str,
    secure: bool,
}

impl Cookie {
    /// The cookie with the session id.
    pub(super) const fn session(secure: bool) -> Self {
        Self { name: if secure { "__Host-milepost" } else { "milepost" }, secure }
    }

    /// The cookie with the message that the next page shows.
    pub(super) const fn said(secure: bool) -> Self {
        Self { name: if secure { "__Host-milepost_said" } else { "milepost_said" }, secure }
    }

    /// The cookie that binds a sign-in with a provider to the browser.
    pub(super) const fn sign_in(secure: bool) -> Self {
        Self { name: if secure { "__Host-milepost_sign_in" } else { "milepost_sign_in" }, secure }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the header that sets the cookie until the browser is closed. The server limits the lifetime of the session.
    pub(super) fn with(self, id: &str) -> Option<HeaderValue> {
        self.header(id, "")
    }

    /// Returns the header that sets the cookie for 30 seconds.
    pub(crate) fn briefly(self, value: &str) -> Option<HeaderValue> {
        self.header(value, "; Max-Age=30")
    }

    /// Returns the header that sets the cookie for this time.
    pub(crate) fn lasting(self, value: &str, time: Duration) -> Option<HeaderValue> {
        self.header(value, &format!("; Max-Age={}", time.as_secs()))
    }

    /// Returns the header that removes the cookie.
    pub(crate) fn without(self) -> Option<HeaderValue> {
        self.header("", "; Max-Age=0")
    }

    fn header(self, value: &str, more: &str) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}", self.name).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_bound_to_its_host_and_hidden_from_scripts() {
        let secure = Cookie::session(true).with("x").unwrap();
        assert_eq!(secure, "__Host-milepost=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        let plain = Cookie::session(false).without().unwrap();
        assert_eq!(plain, "milepost=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
        let said = Cookie::said(true).briefly("done.x").unwrap();
        let sign_in = Cookie::sign_in(true).lasting("x", Duration::from_secs(600)).unwrap();
        assert_eq!(sign_in, "__Host-milepost_sign_in=x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600");
        assert_eq!(said, "__Host-milepost_said=done.x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=30");
    }
}
