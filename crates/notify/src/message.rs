//! The contents of messages, as text and as JSON.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::alert::{Incident, Notices, Severity};
use milepost_core::text::is_unprintable;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The maximum number of incidents in a text; the others are counted.
pub const SHOWN_MAX: usize = 10;
/// The maximum number of incidents in a JSON document, of those that have begun and of those that have ended.
const LISTED_MAX: usize = 100;
/// How many characters of the words of an incident a text shows.
const WORDS_CHARS_MAX: usize = 300;
/// The maximum number of characters of a headline.
const HEADLINE_CHARS_MAX: usize = 150;

/// A message to a target.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its id, which is the same if the message is sent again.
    pub id: String,
    /// When it is sent.
    pub sent_at: Timestamp,
    target: &'a str,
    /// The notices; `None` for a test.
    notices: Option<&'a Notices>,
    /// The address of the console.
    console: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// Creates a message about incidents.
    #[must_use]
    pub fn new(target: &'a str, notices: &'a Notices, console: Option<&'a str>, sent_at: Timestamp) -> Self {
        let parts = notices.all().map(|(stage, incident)| format!("\n{} {stage}", incident.id));
        let id = id_of(parts.fold(target.to_owned(), |all, part| all + &part).as_bytes());
        Self { id, sent_at, target, notices: Some(notices), console }
    }

    /// Creates a test message.
    #[must_use]
    pub fn test(target: &'a str, console: Option<&'a str>, sent_at: Timestamp) -> Self {
        let id = id_of(format!("{target}\ntest {}", sent_at.as_nanosecond()).as_bytes());
        Self { id, sent_at, target, notices: None, console }
    }

    /// Returns one line that names what it is about.
    #[must_use]
    pub fn headline(&self) -> String {
        let Some(notices) = self.notices else {
            return format!("Milepost: test of the target {}", self.target).replace(is_unprintable, " ");
        };
        let (begun, ended) = (notices.begun.len(), notices.ended.len());
        let line = match (&notices.begun[..], &notices.ended[..]) {
            ([one], []) => format!("{}: {}", label(one), one.title),
            ([], [one]) => format!("Ended: {}", one.title),
            (_, []) => format!("{begun} alerts: {}", titles(&notices.begun)),
            ([], _) => format!("{ended} alerts ended: {}", titles(&notices.ended)),
            _ => format!("{}, {ended} ended: {}", several(begun), titles(&notices.begun)),
        };
        let line = format!("Milepost: {line}").replace(is_unprintable, " ");
        cut(&line, HEADLINE_CHARS_MAX)
    }

    /// Returns the text of chats and mails.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(notices) = self.notices else {
            return format!(
                "This is a test of Milepost. Alerts of the target {} arrive here.\n",
                self.target
            );
        };
        let begun = notices.begun.iter().map(|incident| {
            let words = one_line(&incident.words, WORDS_CHARS_MAX);
            format!(
                "{}: {}\n    {words}\n    {}\n",
                label(incident),
                title(incident),
                one_line(&incident.command, 200)
            )
        });
        let ended = notices.ended.iter().map(|incident| {
            let lasted = incident.ended_at.map_or_else(String::new, |at| lasted(incident.first_seen_at, at));
            format!("Ended: {}{lasted}\n", title(incident))
        });
        let number = notices.begun.len() + notices.ended.len();
        let mut text: String = begun.chain(ended).take(SHOWN_MAX).collect();
        if number > SHOWN_MAX {
            text += &format!("and {} more\n", number - SHOWN_MAX);
        }
        match self.console {
            Some(console) => text + console + "\n",
            None => text,
        }
    }

    /// Returns the document of webhooks.
    #[must_use]
    pub fn json(&self) -> Value {
        let none = Notices::default();
        let notices = self.notices.unwrap_or(&none);
        let listed = |all: &[Incident]| all.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>();
        let more = |all: &[Incident]| all.len().saturating_sub(LISTED_MAX);
        json!({
            "type": if self.notices.is_some() { "milepost.alerts" } else { "milepost.test" },
            "id": self.id,
            "target": self.target,
            "sent_at": self.sent_at,
            "console": self.console,
            "headline": self.headline(),
            "begun": listed(&notices.begun),
            "ended": listed(&notices.ended),
            "more": more(&notices.begun) + more(&notices.ended),
        })
    }
}

/// Returns an id that depends only on the content.
fn id_of(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().take(16).fold("alerts_".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

fn label(incident: &Incident) -> &'static str {
    match incident.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    }
}

fn title(incident: &Incident) -> String {
    one_line(&incident.title, WORDS_CHARS_MAX)
}

fn titles(incidents: &[Incident]) -> String {
    incidents.iter().take(3).map(|incident| incident.title.as_str()).collect::<Vec<_>>().join("; ")
}

fn several(alerts: usize) -> String {
    if alerts == 1 { "1 alert".to_owned() } else { format!("{alerts} alerts") }
}

fn lasted(from: Timestamp, to: Timestamp) -> String {
    let seconds = u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0);
    let lasted = milepost_core::duration::exact(Duration::from_secs(seconds));
    format!(" (after {lasted})")
}

/// Returns a text on one line, with at most this many characters.
fn one_line(text: &str, chars_max: usize) -> String {
    cut(&text.replace(is_unprintable, " "), chars_max)
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use milepost_core::alert::AlertRule;
    use milepost_core::ident::IncidentId;

    use super::*;

    fn incident(number: usize) -> Incident {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        Incident {
            id: IncidentId::new(),
            rule: AlertRule::QueuePaused,
            subject: format!("q{number}"),
            severity: Severity::Warning,
            title: format!("Queue q{number} is paused"),
            words: "Since now;\n3 jobs wait.".to_owned(),
            command: "milepost queues resume".to_owned(),
            first_seen_at: at,
            last_seen_at: at,
            ended_at: None,
            silence: None,
        }
    }

    fn message(notices: &Notices) -> Message<'_> {
        Message::new("oncall", notices, Some("https://jobs.example.org"), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_text_shows_a_few_alerts_and_counts_the_others() {
        let notices = Notices { begun: (0..22).map(incident).collect(), ended: Vec::new() };
        let text = message(&notices).text();
        assert!(text.starts_with("Warning: Queue q0 is paused\n    Since now; 3 jobs wait.\n"), "{text}");
        assert!(text.ends_with("and 12 more\nhttps://jobs.example.org\n"), "{text}");
        assert_eq!(text.matches("is paused").count(), SHOWN_MAX);
        assert!(message(&notices).headline().starts_with("Milepost: 22 alerts: Queue q0 is paused; "));
        assert_eq!(message(&notices).json()["begun"].as_array().map(Vec::len), Some(22));
    }

    #[test]
    fn an_end_tells_how_long_the_alert_lasted() {
        let mut ended = incident(1);
        ended.ended_at = Some(ended.first_seen_at + Duration::from_secs(720));
        let notices = Notices { begun: Vec::new(), ended: vec![ended] };
        assert!(message(&notices).text().starts_with("Ended: Queue q1 is paused (after 12m)\n"));
    }

    #[test]
    fn a_message_that_is_sent_again_has_the_same_id() {
        let notices = Notices { begun: vec![incident(1)], ended: Vec::new() };
        let other = Notices { begun: Vec::new(), ended: notices.begun.clone() };
        assert_eq!(message(&notices).id, message(&notices).id);
        assert_ne!(message(&notices).id, message(&other).id);
    }
}
