//! Browser tests of the console: Chromium visits the pages of a real server.

#![cfg(target_os = "linux")]

mod accessibility;
#[path = "browser.rs"]
mod chromium;
mod keys;
mod layout;
mod live;
mod pages;
mod search;
mod sign_in;
mod walk;

use crate::support::Place;
use crate::support::process::Process;
use chromium::Browser;

/// A server with its console, and a browser.
pub(crate) struct Console {
    pub(crate) browser: Browser,
    address: String,
    _server: Process,
    pub(crate) place: Place,
}

impl Console {
    /// Starts a server with the place's configuration.
    pub(crate) fn of(place: Place) -> Self {
        let (server, address) = Process::serve(&place, &[]);
        Self { browser: Browser::start(), address, _server: server, place }
    }

    pub(crate) fn open(&self, path: &str) {
        self.browser.open(&format!("http://{}{path}", self.address));
    }

    /// Marks the page, so that a full reload is detected.
    pub(crate) fn mark_page(&self) {
        self.browser.read("window.marked = true");
    }

    #[track_caller]
    pub(crate) fn was_not_loaded_anew(&self) {
        assert_eq!(self.browser.read("window.marked === true"), true, "the page was loaded again");
    }

    /// Submits the form of a button, with a reason.
    #[track_caller]
    pub(crate) fn act(&self, id: &str, reason: &str) {
        self.browser.click(&format!("[popovertarget='{id}']:not(form *)"));
        self.browser.fill(&format!("#{id} [name=reason]"), reason);
        self.browser.click_through(&format!("#{id} .buttons button:not([type=button])"));
    }

    /// Waits until the badge beside the title shows this state.
    #[track_caller]
    pub(crate) fn until_state(&self, state: &str) {
        self.browser.until_says(".head > .state", state);
    }

    #[track_caller]
    pub(crate) fn has_no_complaints(&self) {
        assert_eq!(self.browser.complaints(), [""; 0], "at {}", self.browser.path());
    }
}
