//! `milepost completions` and `milepost man`: files that are generated from the command line's definition.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use milepost_cli_support::output::{self, Outcome};

/// The name of the program.
const PROGRAM: &str = "milepost";

/// The subcommand of each group of commands that prints help, which has no page.
const HELP: &str = "help";

/// The commands that print what is generated.
#[derive(Debug, Subcommand)]
pub(crate) enum GeneratedCommand {
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages into a folder
    Man(ManArgs),
}

/// The shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  milepost completions bash > ~/.local/share/bash-completion/completions/milepost\n  \
    milepost completions zsh > ~/.zfunc/_milepost\n  \
    milepost completions fish > ~/.config/fish/completions/milepost.fish"
)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

/// Where the pages go.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  milepost man | man -l -\n  milepost man --folder ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder, which is created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(command: GeneratedCommand, program: Command) -> Result<Outcome> {
    match command {
        GeneratedCommand::Completions(args) => completions(&args, program),
        GeneratedCommand::Man(args) => man(args, program),
    }
}

fn completions(args: &CompletionsArgs, mut program: Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, PROGRAM, &mut script);
    print(&script)
}

fn man(args: ManArgs, mut program: Command) -> Result<Outcome> {
    program.build();
    let Some(folder) = args.folder else { return print(&page(&program)?) };
    let written =
        fs::create_dir_all(&folder).map_err(Into::into).and_then(|()| write_pages(&program, &folder));
    let count = written.with_context(|| format!("cannot write the pages into {}", folder.display()))?;
    output::note(format_args!("wrote {count} pages into {}", folder.display()));
    Ok(Outcome::Done)
}

/// Writes the page of a command and those of its subcommands. Returns their number.
fn write_pages(command: &Command, folder: &std::path::Path) -> Result<usize> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page(command)?)?;
    let has_page = |below: &&Command| !below.is_hide_set() && below.get_name() != HELP;
    let below = command.get_subcommands().filter(has_page);
    below.map(|below| write_pages(below, folder)).try_fold(1, |sum, count| Ok(sum + count?))
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Prints a generated text. A reader may close the pipe early.
fn print(text: &[u8]) -> Result<Outcome> {
    output::heard_or_not(io::stdout().write_all(text).map_err(Into::into))?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    /// The width of help in the reference, in columns.
    const WIDTH: usize = 100;

    const HEAD: &str = "\
# Command line

The help of every command, as `milepost COMMAND -h` prints it. The options of every command are listed once, at the top.
";

    /// Appends the section of a command, and those of its subcommands.
    fn describe(command: &Command, page: &mut String) {
        let name = command.get_bin_name().unwrap_or(PROGRAM);
        // Not the values of the environment in which this test runs.
        let command = command.clone().mut_args(|arg| arg.hide_env_values(true));
        let help = command.clone().term_width(WIDTH).render_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim_end()).unwrap();
        let is_listed = |below: &&Command| !below.is_hide_set() && below.get_name() != HELP;
        for below in command.get_subcommands().filter(is_listed) {
            describe(
                &below.clone().mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg }),
                page,
            );
        }
    }

    /// Run with `MILEPOST_UPDATE_DOCS=1` to update the page.
    #[test]
    fn the_reference_of_the_command_line_is_that_of_this_program() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CLI.md");
        let mut program = Cli::command();
        program.build();
        let mut expected = HEAD.to_owned();
        describe(&program, &mut expected);
        if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
            fs::write(&path, &expected).unwrap();
        }
        let page = fs::read_to_string(&path).unwrap_or_default();
        assert!(page == expected, "docs/CLI.md differs; run this test with MILEPOST_UPDATE_DOCS=1");
    }

    /// Returns the commands of the program in the blocks of ```` ```sh ```` of a page, without what follows a pipe or a comment.
    fn commands(page: &str) -> Vec<String> {
        let mut commands = Vec::new();
        let mut in_shell = false;
        for line in page.lines().map(str::trim) {
            match line.strip_prefix("```") {
                Some(info) => in_shell = !in_shell && info.starts_with("sh"),
                None if in_shell && line.starts_with("milepost ") => {
                    let end = [" | ", " > ", "   #"].iter().filter_map(|end| line.find(end)).min();
                    commands.push(line[..end.unwrap_or(line.len())].to_owned());
                }
                None => {}
            }
        }
        commands
    }

    #[test]
    fn every_command_in_the_guides_is_accepted() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
        let mut checked = 0;
        for page in fs::read_dir(folder).unwrap() {
            let page = page.unwrap().path();
            for command in commands(&fs::read_to_string(&page).unwrap()) {
                let words = shlex::split(&command).unwrap_or_else(|| panic!("{}: {command}", page.display()));
                let parsed = Cli::command().try_get_matches_from(words);
                parsed.unwrap_or_else(|error| panic!("{}: {command}: {error}", page.display()));
                checked += 1;
            }
        }
        assert!(checked > 20, "only {checked} commands");
    }
}
