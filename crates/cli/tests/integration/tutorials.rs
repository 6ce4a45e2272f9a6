//! Runs the tutorials of `docs/tutorials` exactly as they are written, block by block.
//!
//! Blocks of ```` ```sh ```` run one after another in the same shell, in a new folder; those of ```` ```sh background ```` run beside them until the end. A block of
//! ```` ```text ```` is the expected output of the block before; `…` is any text. A block that only shows something is repeated until its output is the expected one, because a
//! reader takes longer than a test. Pages that mention `DATABASE_URL` get a database.
//!
//! A program in Rust is not compiled again: `cargo run` and `cargo test` compare the page's files with those of `examples/mailer`. `cargo run` then starts
//! the program of that example, and the tests of that example run with all others.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use milepost_testkit::database::Database;
use milepost_testkit::{port, wait};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::{clients, support};

/// The line that follows the output of a block.
const END: &str = "-- end of the block, status ";

/// The begin of commands that only show something.
const SHOWS: [&str; 11] = [
    "milepost audit",
    "milepost batch show",
    "milepost bulk list",
    "milepost jobs list",
    "milepost --store \"$DATABASE_URL\" jobs list",
    "milepost jobs show",
    "cat published",
    "cat sent",
    "milepost events lag",
    "sort sent",
    "psql -At",
];
/// How long a tutorial may take: ten minutes if it promises that, otherwise five.
const LONG_TUTORIAL_MAX: Duration = Duration::from_secs(600);
const TUTORIAL_MAX: Duration = Duration::from_secs(300);
/// The address of the server in tutorials; the test uses another port.
const ADDRESS: &str = "127.0.0.1:7070";
/// The port of the shop's own server in tutorials; the test uses another one.
const SHOP_PORT: &str = "3000";

/// A block of a page.
#[derive(Debug)]
struct Block {
    /// The line on which it begins.
    line: usize,
    /// What follows the fence, such as `sh`.
    info: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(page.lines()) {
        match (line.strip_prefix("```"), is_open) {
            (Some(info), false) => {
                blocks.push(Block { line: number, info: info.to_owned(), text: String::new() });
                is_open = true;
            }
            (Some(_), true) => is_open = false,
            (None, true) => blocks.last_mut().unwrap().text += &format!("{line}\n"),
            (None, false) => {}
        }
    }
    blocks
}

/// The folder of programs that a test puts before those of the machine.
const OWN_PROGRAMS: &str = ".programs";

/// A shell that runs blocks.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    has_ended: Arc<AtomicBool>,
}

impl Shell {
    /// Starts a shell in a folder, for a server at this address.
    fn start(folder: &Path, address: &str, database: Option<&Database>, needs: &Needs) -> Self {
        let programs = Path::new(env!("CARGO_BIN_EXE_milepost")).parent().unwrap();
        let (of_postgres, others) = (milepost_testkit::server::programs(), std::env::var("PATH").unwrap());
        let own = folder.join(OWN_PROGRAMS);
        write_cargo(&own, programs);
        let mut path = format!("{}:{}:{}:{others}", own.display(), programs.display(), of_postgres.display());
        if let Some(python) = needs.python {
            path = format!("{}:{path}", python.display());
        }
        let mut command = Command::new("bash");
        command.current_dir(folder).env("PATH", path).env("PYTHONPATH", root().join("clients/python"));
        command.env("MILEPOST_LISTEN", address).env_remove("MILEPOST_STORE");
        // `prisma generate` does not run the schema engine, but loads it from the Internet if no program is named.
        command.env("PRISMA_SCHEMA_ENGINE_BINARY", "/bin/true");
        command.envs(database.map(|database| ("DATABASE_URL", database.url())));
        command.envs(needs.class_path.as_ref().map(|jars| ("CLASSPATH", jars)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        let within = needs.within;
        let (group, has_ended) = (Pid::from_raw(child.id().cast_signed()), Arc::new(AtomicBool::new(false)));
        let ended = has_ended.clone();
        std::thread::spawn(move || {
            std::thread::sleep(within);
            if !ended.load(Ordering::Relaxed) {
                let _ = killpg(group, Signal::SIGKILL);
            }
        });
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, has_ended }
    }

    /// Runs a block. Returns its output and its status.
    fn run(&mut self, block: &str) -> (String, String) {
        // No command may read the blocks that follow.
        writeln!(self.input, "{{\n{block}}} < /dev/null\necho \"{END}$?\"").unwrap();
        let mut output = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the shell has ended after: {output}");
            // The output may end without a line break.
            if let Some((rest, status)) = line.split_once(END) {
                return (output + rest, status.trim().to_owned());
            }
            output += &line;
        }
    }

    /// Repeats a command that only shows something until its output is the expected one. Returns the last output.
    fn until_like(&mut self, command: &str, mut output: String, expected: &str) -> String {
        let only_shows = |line: &str| SHOWS.iter().any(|begin| line.starts_with(begin));
        let began = Instant::now();
        while !is_like(&output, expected) && command.lines().all(only_shows) && began.elapsed() < wait::LIMIT
        {
            std::thread::sleep(Duration::from_millis(200));
            output = self.run(command).0;
        }
        output
    }

    fn start_beside(&mut self, block: &str) {
        let (_, status) = self.run(&format!("{{\n{block}}} > /dev/null 2>&1 &\n"));
        assert_eq!(status, "0");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        let _ = self.child.wait();
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// Writes a program that stands in for cargo, see above. Other commands than `run` and `test` go to the real one.
fn write_cargo(folder: &Path, programs: &Path) {
    let (example, program) = (root().join("examples/mailer"), programs.join("mailer"));
    let (example, program) = (example.display(), program.display());
    let script = format!(
        "#!/bin/sh
set -e
case \"$1\" in
run) cmp src/lib.rs {example}/src/lib.rs; cmp src/main.rs {example}/src/main.rs; shift; [ \"$1\" != -- ] || shift; exec {program} \"$@\" ;;
test) cmp src/lib.rs {example}/src/lib.rs; cmp tests/mail.rs {example}/tests/mail.rs ;;
*) exec {} \"$@\" ;;
esac
",
        env!("CARGO")
    );
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join("cargo");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns whether an output is the expected one.
fn is_like(output: &str, expected: &str) -> bool {
    let mut parts = expected.trim_end().split('…');
    let Some(mut rest) = parts.next().and_then(|begin| output.trim_end().strip_prefix(begin)) else {
        return false;
    };
    let mut ends_exactly = rest.is_empty();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        ends_exactly = part.is_empty() || rest.is_empty();
    }
    ends_exactly
}

/// What a page needs besides the program.
struct Needs {
    /// The programs of a Python with libraries.
    python: Option<&'static Path>,
    class_path: Option<String>,
    /// The time in which all commands end.
    within: Duration,
}

impl Needs {
    /// Builds and installs what a page needs. `folder`: in which its commands run. `jars`: a folder for the package for Java.
    fn of(text: &str, folder: &Path, jars: &Path) -> Self {
        if text.contains("milepost-client-0.1.0.tgz") {
            clients::pack_typescript("typescript-packed-tutorial", folder);
            let programs = folder.join(OWN_PROGRAMS);
            std::fs::create_dir_all(&programs).unwrap();
            std::os::unix::fs::symlink(clients::node_of_libraries(), programs.join("node")).unwrap();
        } else if text.contains("@milepost/client") {
            // As `npm install` links it.
            let packages = folder.join("node_modules/@milepost");
            std::fs::create_dir_all(&packages).unwrap();
            let built = clients::build_typescript("typescript-tutorial");
            std::os::unix::fs::symlink(built, packages.join("client")).unwrap();
        }
        Self {
            python: text.contains("manage.py").then(clients::python),
            class_path: text.contains("milepost-java").then(|| clients::java_class_path(jars)),
            within: if text.contains("ten minutes") { LONG_TUTORIAL_MAX } else { TUTORIAL_MAX },
        }
    }
}

/// Follows a page.
fn follow(name: &str) {
    let page = &tutorials().join(name);
    let address = format!("127.0.0.1:{}", port::free());
    let text = std::fs::read_to_string(page).unwrap();
    let database = text.contains("DATABASE_URL").then(|| support::block_on(Database::create()));
    let text = text.replace(SHOP_PORT, &port::free().to_string()).replace(ADDRESS, &address);
    let folder = tempfile::tempdir().unwrap();
    let jars = tempfile::tempdir().unwrap();
    let needs = Needs::of(&text, folder.path(), jars.path());
    let mut shell = Shell::start(folder.path(), &address, database.as_ref(), &needs);
    let mut last: Option<(String, String)> = None;
    let mut commands = 0;
    for block in blocks(&text) {
        let place = format!("{}:{}", page.display(), block.line);
        match block.info.as_str() {
            "sh" => {
                let (output, status) = shell.run(&block.text);
                assert_eq!(status, "0", "{place}: {output}");
                last = Some((block.text, output));
                commands += 1;
            }
            "sh background" => shell.start_beside(&block.text),
            "text" => {
                let (command, output) =
                    last.take().unwrap_or_else(|| panic!("{place}: the output of nothing"));
                let output = shell.until_like(&command, output, &block.text);
                assert!(is_like(&output, &block.text), "{place}: the output is another one:\n{output}");
            }
            other => panic!("{place}: {other:?} is not a kind of block in a tutorial"),
        }
    }
    assert!(commands > 3, "{}: only {commands} blocks", page.display());
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

fn tutorials() -> PathBuf {
    root().join("docs/tutorials")
}

#[test]
fn the_first_job() {
    follow("first-job.md");
}

#[test]
fn jobs_from_plain_sql() {
    follow("plain-sql.md");
}

#[test]
fn a_worker_in_python() {
    follow("python-worker.md");
}

#[test]
fn jobs_in_a_django_project() {
    follow("django.md");
}

#[test]
fn a_worker_in_typescript() {
    follow("typescript-worker.md");
}

#[test]
fn a_worker_in_any_language() {
    follow("any-language.md");
}

#[test]
fn jobs_from_express_and_prisma() {
    follow("express-prisma.md");
}

#[test]
fn a_worker_in_java_with_plain_jdbc() {
    follow("jdbc-worker.md");
}

#[test]
fn a_worker_in_rust() {
    follow("rust-worker.md");
}

#[test]
fn a_bulk_run() {
    follow("bulk-run.md");
}

#[test]
fn a_batch() {
    follow("batch.md");
}

#[test]
fn events() {
    follow("events.md");
}

#[test]
fn every_tutorial_is_followed_by_a_test() {
    let tests = include_str!("tutorials.rs");
    for page in std::fs::read_dir(tutorials()).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        assert!(tests.contains(&format!("follow({name:?})")), "{name}");
    }
}

#[test]
fn an_output_is_compared_up_to_its_gaps() {
    for (output, expected, is_it) in [
        ("a 1 b\n", "a … b\n", true),
        ("a 1 c\n", "a … b\n", false),
        ("a\nb\nc\n", "a\n…\n", true),
        ("x a\n", "a\n", false),
        ("a x\n", "a\n", false),
        ("a\n", "a\n", true),
        ("1 a 2\n", "…a…\n", true),
    ] {
        assert_eq!(is_like(output, expected), is_it, "{output:?} {expected:?}");
    }
}
