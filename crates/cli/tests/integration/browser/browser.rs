//! A headless Chromium with a separate driver process.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use thirtyfour::common::capabilities::chrome::ChromeCapabilities;
use thirtyfour::error::WebDriverResult;
use thirtyfour::{By, ChromiumLikeCapabilities, LoggingPrefsLogLevel, WebDriver};
use tokio::runtime::Runtime;

/// The time limit of every wait.
const PATIENCE: Duration = milepost_testkit::wait::LIMIT;
/// A browser keeps one processor busy, so only one test uses a browser at a time.
static TURN: Mutex<()> = Mutex::new(());

/// No window, a fixed size, and no background activity such as update checks and requests to the vendor's servers.
const ARGUMENTS: [&str; 10] = [
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--window-size=1400,1000",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
];

/// A browser, which is closed with the test.
pub(crate) struct Browser {
    runtime: Runtime,
    web: Option<WebDriver>,
    _driver: Driver,
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // The connection to the driver is not encrypted, but its client requires a TLS provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let driver = Driver::start();
        let runtime = Runtime::new().unwrap();
        let web = runtime.block_on(async {
            let web = WebDriver::new(&driver.url, capabilities().unwrap()).await.unwrap();
            web.set_script_timeout(PATIENCE).await.unwrap();
            web
        });
        Self { runtime, web: Some(web), _driver: driver, _turn: turn }
    }

    fn web(&self) -> &WebDriver {
        self.web.as_ref().unwrap()
    }

    pub(crate) fn open(&self, url: &str) {
        self.runtime.block_on(self.web().goto(url)).unwrap();
    }

    pub(crate) fn reload(&self) {
        self.runtime.block_on(self.web().refresh()).unwrap();
    }

    /// Returns the path and query of the current page.
    pub(crate) fn path(&self) -> String {
        self.read("location.pathname + location.search").as_str().unwrap().to_owned()
    }

    /// Evaluates a JavaScript expression in the page.
    pub(crate) fn read(&self, expression: &str) -> Value {
        self.try_read(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn try_read(&self, expression: &str) -> WebDriverResult<Value> {
        let script = format!("return {expression};");
        let answer = self.runtime.block_on(self.web().execute(script, Vec::new()))?;
        Ok(answer.json().clone())
    }

    /// Counts the elements that match a selector.
    pub(crate) fn count(&self, css: &str) -> u64 {
        self.read(&format!("document.querySelectorAll({css:?}).length")).as_u64().unwrap()
    }

    /// Clicks an element as soon as it is clickable.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        self.insist(css, async || self.web().find(By::Css(css)).await?.click().await);
    }

    /// Clicks an element that leads to another page, and waits until that page is loaded; it may look the same as the previous one.
    #[track_caller]
    pub(crate) fn click_through(&self, css: &str) {
        self.read("window.leaving = true");
        self.click(css);
        self.until("another page is loaded", "!window.leaving && document.readyState === 'complete'");
    }

    /// Replaces the text of a field.
    #[track_caller]
    pub(crate) fn fill(&self, css: &str, text: &str) {
        self.insist(css, async || {
            let field = self.web().find(By::Css(css)).await?;
            field.clear().await?;
            field.send_keys(text).await
        });
    }

    /// Runs a command of the Chrome DevTools protocol, for example to emulate another screen; returns its result.
    pub(crate) fn command(&self, name: &str, parameters: Value) -> Value {
        self.runtime.block_on(self.web().cdp().send_raw(name, parameters)).unwrap()
    }

    /// Stops the page's clock.
    pub(crate) fn stop_clock(&self) {
        self.read("(() => { const now = Date.now(); Date.now = () => now; })()");
    }

    /// Presses keys in the focused element.
    pub(crate) fn press(&self, keys: &str) {
        self.runtime.block_on(self.web().action_chain().send_keys(keys).perform()).unwrap();
    }

    /// Waits until a JavaScript expression is true, also across page loads; returns its value.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, expression: &str) -> Value {
        self.wait(what, || self.try_read(expression).ok().filter(is_true))
    }

    /// Waits until an element that matches the selector contains this text.
    #[track_caller]
    pub(crate) fn until_says(&self, css: &str, words: &str) {
        let says = format!(
            "[...document.querySelectorAll({css:?})].some((it) => it.textContent.includes({words:?}))"
        );
        self.until(&format!("{css} contains {words:?}"), &says);
    }

    #[track_caller]
    fn insist(&self, css: &str, act: impl AsyncFn() -> WebDriverResult<()>) {
        self.wait(css, || self.runtime.block_on(act()).ok());
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, so: impl Fn() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(it) = so() {
                return it;
            }
            if began.elapsed() > PATIENCE {
                let page = self.try_read("location.href + '\\n' + document.body.innerText");
                panic!(
                    "the expected state was not reached: {what}\n{}",
                    page.unwrap_or_default().as_str().unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the browser's warnings and errors since the last call: errors of scripts, violations of the content security policy, and
    /// failed requests.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let entries = self.runtime.block_on(self.web().browser_log()).unwrap();
        let bad = entries.into_iter().filter(|entry| ["SEVERE", "WARNING"].contains(&entry.level.as_str()));
        bad.map(|entry| entry.message).collect()
    }

    /// Waits until the browser has reported all of these warnings; others are ignored.
    #[track_caller]
    pub(crate) fn hears_of(&self, all: &[&str]) {
        let heard = std::cell::RefCell::new(Vec::<String>::new());
        self.wait(&format!("the browser reports {all:?}"), || {
            heard.borrow_mut().extend(self.complaints());
            let heard = heard.borrow();
            all.iter().all(|words| heard.iter().any(|told| told.contains(words))).then_some(())
        });
    }

    /// Waits until the browser reports a warning, which happens shortly after the page is shown, and asserts that all warnings contain this
    /// text.
    #[track_caller]
    pub(crate) fn complains_of(&self, words: &str) {
        let complaints =
            self.wait(words, || Some(self.complaints()).filter(|complaints| !complaints.is_empty()));
        assert!(complaints.iter().all(|complaint| complaint.contains(words)), "{complaints:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(web) = self.web.take() {
            let _ = self.runtime.block_on(web.quit());
        }
    }
}

fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn capabilities() -> WebDriverResult<ChromeCapabilities> {
    let mut wanted = ChromeCapabilities::new();
    for arg in ARGUMENTS {
        wanted.add_arg(arg)?;
    }
    if nix::unistd::geteuid().is_root() {
        wanted.add_arg("--no-sandbox")?;
    }
    wanted.set_browser_log_level(LoggingPrefsLogLevel::All)?;
    if let Ok(program) = std::env::var("MILEPOST_TEST_CHROMIUM") {
        wanted.set_binary(&program)?;
    }
    Ok(wanted)
}

/// The driver process.
struct Driver {
    child: Child,
    url: String,
    /// Kept open, because the driver continues to write to it.
    log: BufReader<ChildStdout>,
}

/// The maximum number of attempts to start a driver. It uses a free port of `::1` and ends if another process has the same port of
/// `127.0.0.1`, where the servers of all tests listen.
const STARTS_MAX: usize = 20;

impl Driver {
    fn start() -> Self {
        let program =
            std::env::var("MILEPOST_TEST_CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".to_owned());
        let mut said = String::new();
        for _ in 0..STARTS_MAX {
            match Self::start_once(&program) {
                Ok(driver) => return driver,
                Err(words) => said = words,
            }
        }
        panic!("{program} ended before it listened, {STARTS_MAX} times; its last output: {said}");
    }

    /// Starts a driver once; returns its output if it ended before it listened.
    fn start_once(program: &str) -> Result<Self, String> {
        let mut command = Command::new(program);
        // The driver and its browsers form a process group, which is killed as a whole.
        command.arg("--port=0").process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{program} cannot be started ({error}); run `scripts/test`, or `scripts/services run cargo test`")
        });
        let log = BufReader::new(child.stdout.take().unwrap());
        let mut driver = Self { child, url: String::new(), log };
        let mut said = String::new();
        loop {
            let line_start = said.len();
            if driver.log.read_line(&mut said).unwrap() == 0 {
                return Err(said);
            }
            let line = said[line_start..].trim_end().trim_end_matches('.');
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                driver.url = format!("http://127.0.0.1:{port}");
                return Ok(driver);
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
