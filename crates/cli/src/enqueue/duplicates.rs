//! Options for jobs whose keys other jobs hold.

use std::time::Duration;

use clap::Args;
use milepost_cli_support::parsers;
use milepost_core::job::duplicate::{DuplicateAction, OnDuplicate, Unique};

/// How long a job holds its key, as given on the command line.
#[derive(Clone, Copy, Debug)]
enum UniqueArg {
    Until(Unique),
    For(Duration),
}

#[derive(Clone, Debug, Args)]
pub(super) struct DuplicateArgs {
    /// What happens to a job that holds the key: keep, replace, debounce or throttle
    #[arg(long, value_name = "ACTION", value_parser = action)]
    on_duplicate: Option<DuplicateAction>,
    /// For debounce: how long after the last enqueue the job starts
    #[arg(long, value_name = "DURATION", value_parser = parsers::positive_duration, requires = "on_duplicate")]
    delay: Option<Duration>,
    /// For debounce: how long after its creation the job starts at the latest
    #[arg(long, value_name = "DURATION", value_parser = parsers::positive_duration, requires = "on_duplicate")]
    max_delay: Option<Duration>,
    /// For throttle: the period in which one job is created
    #[arg(long, value_name = "DURATION", value_parser = parsers::positive_duration, requires = "on_duplicate")]
    period: Option<Duration>,
    /// How long a job holds the key: forever, live (until it has ended), waiting (until it starts), or a time after its end such as 1h
    #[arg(long, value_name = "UNTIL", value_parser = unique)]
    unique: Option<UniqueArg>,
}

impl DuplicateArgs {
    /// Returns the rule; `None` if no option is given.
    pub(super) fn rule(&self) -> Option<OnDuplicate> {
        if self.on_duplicate.is_none() && self.unique.is_none() {
            return None;
        }
        let ms =
            |time: Option<Duration>| time.map(|time| milepost_core::duration::whole_ms(time).unsigned_abs());
        let rule = OnDuplicate {
            action: self.on_duplicate.unwrap_or(DuplicateAction::Keep),
            delay_ms: ms(self.delay),
            max_delay_ms: ms(self.max_delay),
            period_ms: ms(self.period),
            ..OnDuplicate::keep()
        };
        Some(match self.unique {
            None => rule,
            Some(UniqueArg::Until(unique)) => rule.unique(unique),
            Some(UniqueArg::For(time)) => rule.unique_for(time),
        })
    }
}

fn action(text: &str) -> Result<DuplicateAction, String> {
    text.parse().map_err(|unknown: milepost_core::named::UnknownName| unknown.to_string())
}

fn unique(text: &str) -> Result<UniqueArg, String> {
    if let Ok(unique) = text.parse() {
        return Ok(UniqueArg::Until(unique));
    }
    let time = parsers::positive_duration(text);
    time.map(UniqueArg::For).map_err(|why| format!("expected forever, live, waiting or a duration; {why}"))
}
