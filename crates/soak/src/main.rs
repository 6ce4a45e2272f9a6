//! `milepost-soak`: hours of load and faults, after which nothing may have grown.

use anyhow::{Result, bail};
use clap::Parser;
use milepost_soak::{SoakArgs, run};

#[tokio::main]
async fn main() -> Result<()> {
    let outcome = run(&SoakArgs::parse()).await?;
    println!("{outcome}");
    if !outcome.failures().is_empty() {
        bail!("the soak failed");
    }
    Ok(())
}
