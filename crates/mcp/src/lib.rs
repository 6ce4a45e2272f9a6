//! `milepost mcp`: tools for agents, by the Model Context Protocol over stdin and stdout. Each tool is a request to the HTTP API of `milepost serve`, so
//! the role of the token decides what an agent may see and do, and the audit log names the token.

mod api;
mod tools;

use anyhow::{Context, Result};
use clap::Args;
use milepost_cli_support::output::Outcome;
use rmcp::ServiceExt;
use rmcp::transport::stdio;

use crate::api::Api;
use crate::tools::Tools;

const EXAMPLES: &str = "\
A program that speaks the Model Context Protocol starts this command, and talks
to it on stdin and stdout. Its tools show problems, jobs, batches, bulk runs,
queues, workers and parked events, and retry jobs and batches with a reason.
The token decides what they may do: with the role viewer they only look.

The token is read from MILEPOST_TOKEN, because other users of this machine can
see the arguments of commands.

Examples:
  milepost tokens create agent --role viewer
  MILEPOST_TOKEN=... milepost mcp --url https://milepost.internal:7070";

/// The arguments of `milepost mcp`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct McpArgs {
    /// The address of a server
    #[arg(long, env = "MILEPOST_URL", value_name = "URL", default_value = "http://127.0.0.1:7070")]
    url: String,
}

/// Answers the requests on stdin until it ends.
///
/// # Errors
/// The URL or the token cannot be used, or the program at the other end does not speak the protocol.
pub async fn run(args: &McpArgs) -> Result<Outcome> {
    let token = std::env::var("MILEPOST_TOKEN").ok().filter(|token| !token.is_empty());
    let api = Api::new(&args.url, token.as_deref())?;
    let service =
        Tools::new(api).serve(stdio()).await.context("the Model Context Protocol on stdin failed")?;
    service.waiting().await.context("the Model Context Protocol on stdin failed")?;
    Ok(Outcome::Done)
}
