//! Tests of sign-in and permissions in the console.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::browser::Console;
use crate::support::{Place, on_each_store};

on_each_store! {
    somebody_signs_in_with_a_token_and_out_again,
    an_open_page_leads_to_the_sign_in_when_its_session_is_over,
    a_viewer_sees_no_buttons_and_what_is_forged_is_refused,
}

impl Console {
    fn of_those_with_tokens(place: Place, config: &str) -> Self {
        place.write("milepost.toml", format!("[serve]\nrequire_tokens = true\n{config}"));
        Self::of(place)
    }

    fn token(&self, name: &str, role: &str) -> String {
        self.place.run(&["tokens", "create", name, "--role", role]).ok().out.trim().to_owned()
    }

    /// Enters a token in the sign-in form.
    fn sign_in(&self, token: &str) {
        self.browser.fill("#token", token);
        self.browser.click_through("main button");
    }

    fn until_at(&self, path: &str) {
        self.browser.until(path, &format!("location.pathname + location.search === {path:?}"));
    }

    /// Returns the response to a form that a page of this server sends.
    fn send(&self, path: &str, form: &str) -> serde_json::Value {
        let kind = "{ 'content-type': 'application/x-www-form-urlencoded' }";
        let fetch = format!("fetch({path:?}, {{ method: 'POST', headers: {kind}, body: {form} }})");
        self.browser.read(&format!("{fetch}.then((answer) => answer.status)"))
    }
}

fn somebody_signs_in_with_a_token_and_out_again(place: Place) {
    let console = Console::of_those_with_tokens(place, "");
    let token = console.token("anna", "operator");
    let browser = &console.browser;
    console.open("/jobs?state=failed");
    console.until_at("/sign-in?next=%2Fjobs%3Fstate%3Dfailed");
    console.has_no_complaints();
    for wrong in ["swordfish", &format!("mp_aaaaaaaa_{}", "a".repeat(43))] {
        console.sign_in(wrong);
        browser.until_says(".fault", "token");
        assert_eq!(browser.count("nav"), 0, "{wrong}");
        browser.complains_of("status of 401");
    }
    console.sign_in(&token);
    console.until_at("/jobs?state=failed");
    browser.until_says(".who", "anna");
    assert_eq!(browser.read("document.cookie"), "", "no script sees the session");
    browser.click(".who button");
    console.until_at("/sign-in");
    console.open("/queues");
    console.until_at("/sign-in?next=%2Fqueues");
    console.has_no_complaints();
}

fn an_open_page_leads_to_the_sign_in_when_its_session_is_over(place: Place) {
    // The reload every five seconds does not count as use of the session.
    let console = Console::of_those_with_tokens(place, "session_idle = \"20s\"\n");
    let token = console.token("anna", "viewer");
    console.open("/queues");
    console.sign_in(&token);
    console.until_at("/queues");
    console.until_at("/sign-in?next=%2Fqueues");
    console.sign_in(&token);
    console.until_at("/queues");
    console.has_no_complaints();
}

fn a_viewer_sees_no_buttons_and_what_is_forged_is_refused(place: Place) {
    let console = Console::of_those_with_tokens(place, "");
    let (viewer, operator) = (console.token("vera", "viewer"), console.token("anna", "operator"));
    let id = console.place.enqueue(&[]);
    let (browser, page, operate) = (&console.browser, format!("/jobs/{id}"), format!("/jobs/{id}/operate"));
    let form = "'operation=cancel&reason=because&csrf=' + encodeURIComponent(document.querySelector('[name=csrf]').value)";
    let is_untouched = |how: &str| assert_eq!(console.place.job(&id)["state"], "pending", "{how}");

    console.open(&page);
    console.sign_in(&viewer);
    console.until_at(&page);
    for path in ["/", "/jobs", &page, "/queues"] {
        console.open(path);
        assert_eq!(browser.count("main [popovertarget], main form[method=post]"), 0, "{path}");
    }
    console.has_no_complaints();
    assert_eq!(console.send(&operate, form), 403);
    is_untouched("sent by a viewer");
    browser.click(".who button");
    console.until_at("/sign-in");

    console.open(&page);
    console.sign_in(&operator);
    console.until_at(&page);
    assert!(browser.count("main [popovertarget]") > 0);
    for forged in ["'operation=cancel&reason=because'", "'operation=cancel&reason=because&csrf=guessed'"] {
        assert_eq!(console.send(&operate, forged), 403, "{forged}");
    }
    is_untouched("without what its page has");
    let csrf = browser.read("document.querySelector('[name=csrf]').value");
    let elsewhere = other_site(&format!(
        "<form method=post action=\"{}\"><input name=operation value=cancel><input name=reason value=because>\
         <input name=csrf value=\"{}\"><button>Win a prize</button></form>",
        browser.read(&format!("location.origin + {operate:?}")).as_str().unwrap(),
        csrf.as_str().unwrap(),
    ));
    browser.open(&elsewhere);
    browser.click("button");
    browser.until(
        "the server refuses",
        &format!("location.pathname === {operate:?} && document.body.innerText.includes('wrong_origin')"),
    );
    is_untouched("sent from elsewhere");
    let complaints = browser.complaints();
    assert!(complaints.iter().all(|words| words.contains("status of 40")), "{complaints:?}");

    console.open(&page);
    assert_eq!(console.send(&operate, form), 200, "and the page itself may");
    assert_eq!(console.place.job(&id)["state"], "canceled");
}

/// Starts another site on this machine with this page, and returns its address: browsers send it the same cookies.
fn other_site(html: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{html}", html.len());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // Browsers also open connections that they do not use.
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 8192]);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    format!("http://{address}/")
}
