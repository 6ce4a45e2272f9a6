//! Jobs that a bulk job creates, one for each target.

use std::fmt::Write as _;

use super::run::{BadTarget, Chunk, Target};
use crate::job::{Enqueued, NewJob};

impl Chunk<'_> {
    /// Creates a job for each target, with a key derived from the run and the target.
    ///
    /// # Errors
    /// [`BadTarget`] when a target is not JSON.
    pub fn child_jobs(&self, template: &NewJob) -> Result<Vec<NewJob>, BadTarget> {
        let child = |target: &Target| {
            let job = NewJob::from_json(template.kind.clone(), target.row.clone())
                .map_err(|error| BadTarget { code: "target".to_owned(), message: error.to_string() })?;
            let key = without_controls(&serde_json::Value::from(target.key.0.clone()).to_string());
            Ok(NewJob {
                queue: template.queue.clone(),
                priority: template.priority,
                group: template.group.clone(),
                max_attempts: template.max_attempts,
                timeout: template.timeout,
                key: Some(format!("{}:{key}", self.origin)),
                ..job
            })
        };
        self.targets.iter().map(child).collect()
    }
}

/// Escapes the control characters that JSON allows in a text, but keys of jobs do not.
fn without_controls(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        if char.is_control() {
            let _ = write!(text, "\\u{:04x}", u32::from(char));
        } else {
            text.push(char);
        }
    }
    text
}

/// Checks that each target of a chunk got its own job. The jobs were enqueued in the transaction of the chunk, so a job that existed before
/// belongs to another target with the same key. All targets with this key fail together.
///
/// # Errors
/// [`BadTarget`]: the chunk is then applied in smaller parts, and the targets without a job are recorded as failures.
pub fn check_children(made: &[Enqueued]) -> Result<(), BadTarget> {
    if made.iter().all(|job| !job.duplicate) {
        return Ok(());
    }
    let message = "another target of this run has the same key, and there is one job for each key".to_owned();
    Err(BadTarget { code: "same_key".to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_job_has_no_control_characters_of_the_targets_key() {
        assert_eq!(without_controls("[\"d\u{7f}\u{85}é\",1]"), "[\"d\\u007f\\u0085é\",1]");
    }
}
