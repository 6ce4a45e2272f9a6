//! `milepost batch start`.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use milepost_core::batch::start::{NewBatch, check_fit};
use milepost_core::error::StoreError;
use milepost_core::port::BatchStore;
use serde_json::{Value, json};

use super::{find, watch};
use crate::input;
use crate::output::{self, Outcome};
use crate::redis::RedisArgs;

const EXAMPLES: &str = "\
The input is what the expressions of the DAG see as `input`. It must fit the
DAG's input schema, if it has one. Of a DAG at most one batch has a key:
starting it again answers the same batch and changes nothing.

Examples:
  milepost batch start settlement
  milepost batch start settlement --key 2026-11-01 --input '{\"day\": \"2026-11-01\"}'
  jq '{day: .}' day.json | milepost batch start settlement --input-file - --watch";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StartArgs {
    /// The DAG's name
    dag: String,
    /// At most one batch of the DAG ever has this key
    #[arg(long)]
    key: Option<String>,
    /// The input, as JSON [default: {}]
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    input: Option<String>,
    /// A file with the input; - for standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
    /// Which version: its number, or its first digits [default: the latest]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Follow it until it ends; exit status 1 when it is not done
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    #[command(flatten)]
    redis: RedisArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl StartArgs {
    fn input(&self) -> Result<Value> {
        let (text, place) = match (&self.input, &self.input_file) {
            (Some(text), _) => (text.clone(), "--input".to_owned()),
            (None, Some(path)) if path.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the input")?;
                (text, "the input".to_owned())
            }
            (None, Some(path)) => {
                let place = path.display().to_string();
                (
                    input::read_text(path, input::DOCUMENT_BYTES_MAX)
                        .with_context(|| format!("cannot read {place}"))?,
                    place,
                )
            }
            (None, None) => return Ok(json!({})),
        };
        serde_json::from_str(&text).with_context(|| format!("{place} is no JSON"))
    }
}

pub(super) async fn run(args: StartArgs, store: &dyn BatchStore) -> Result<Outcome> {
    let input = args.input()?;
    let latest = find::dag(&args.dag, store).await?;
    let version = match &args.version {
        Some(text) => find::version(&args.dag, text, store).await?,
        None => latest.version,
    };
    let (_, definition) = store.dag(&args.dag, Some(version)).await?;
    if let Some(schema) = &definition.input_schema {
        check_fit(schema, &input).map_err(StoreError::from)?;
    }
    let mut batch = NewBatch::new(&args.dag, &input)?;
    batch.key.clone_from(&args.key);
    // The one whose schema was looked at, even when another one is stored meanwhile.
    batch.version = Some(version);
    let teller = args.redis.teller();
    let started = store.start_batch(&batch).await?;
    let id = started.batch;
    if !started.duplicate {
        teller.ready().await;
    }
    if args.json {
        output::heard_or_not(output::json(&started))?;
    } else if started.duplicate {
        output::deed(format_args!("{id}  duplicate: this key was there before; nothing was changed"))?;
    } else {
        output::deed(format_args!("{id}  started"))?;
    }
    if args.watch { watch::follow(id, store).await } else { Ok(Outcome::Done) }
}
