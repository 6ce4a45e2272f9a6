//! The cookie that holds a session's id.

use axum::http::HeaderValue;

/// How the cookie is called and set.
///
/// Where browsers reach the server by HTTPS it has the prefix `__Host-`, so that no other host, path or plain connection can set it. A server on this
/// machine's own address speaks HTTP: there the prefix is left away, since not all browsers take it from `http://localhost`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cookie {
    pub(super) secure: bool,
}

impl Cookie {
    pub(super) const fn name(self) -> &'static str {
        if self.secure { "__Host-milepost" } else { "milepost" }
    }

    /// The header that sets it. It goes when the browser is closed; how long it counts is for the server to say.
    pub(super) fn with(self, id: &str) -> Option<HeaderValue> {
        self.header(id, "")
    }

    /// The header that removes it.
    pub(super) fn without(self) -> Option<HeaderValue> {
        self.header("", "; Max-Age=0")
    }

    fn header(self, value: &str, more: &str) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}", self.name()).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_bound_to_its_host_and_hidden_from_scripts() {
        let secure = Cookie { secure: true }.with("x").unwrap();
        assert_eq!(secure, "__Host-milepost=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        let plain = Cookie { secure: false }.without().unwrap();
        assert_eq!(plain, "milepost=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    }
}
