//! The cookies of the console: the id of a session, and what a page says once at its top.

use axum::http::HeaderValue;

/// How a cookie is called and set.
///
/// Where browsers reach the server by HTTPS it has the prefix `__Host-`, so that no other host, path or plain connection can set it. A server on this
/// machine's own address speaks HTTP: there the prefix is left away, since not all browsers take it from `http://localhost`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookie {
    name: &'static str,
    secure: bool,
}

impl Cookie {
    /// The one that holds the id of a session.
    pub(super) const fn session(secure: bool) -> Self {
        Self { name: if secure { "__Host-milepost" } else { "milepost" }, secure }
    }

    /// The one that holds what the next page says.
    pub(super) const fn said(secure: bool) -> Self {
        Self { name: if secure { "__Host-milepost_said" } else { "milepost_said" }, secure }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.name
    }

    /// The header that sets it. It goes when the browser is closed; how long it counts is for the server to say.
    pub(super) fn with(self, id: &str) -> Option<HeaderValue> {
        self.header(id, "")
    }

    /// The header that sets it for half a minute.
    pub(crate) fn briefly(self, value: &str) -> Option<HeaderValue> {
        self.header(value, "; Max-Age=30")
    }

    /// The header that removes it.
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
        assert_eq!(said, "__Host-milepost_said=done.x; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=30");
    }
}
