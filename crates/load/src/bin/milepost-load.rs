//! `milepost-load`: load on a real server, with a disturbance and a verdict.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use milepost_load::args::Arguments;
use milepost_load::run::run;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run(&arguments))?;
    print!("{report}");
    if let Some(path) = &arguments.report {
        let page = report.page()?;
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        println!("report: {}", path.display());
    }
    Ok(if report.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
