//! Fingerprints of the settings of a schedule.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::Schedule;

/// Identifies the settings of a schedule: whoever edits it says by this which settings were edited, so that nobody overwrites a change
/// without having seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Schedule {
    /// Returns the fingerprint of its settings.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let settings = serde_json::to_vec(self).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(settings).into();
        Fingerprint(digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::NewJob;
    use crate::schedule::{Misfire, Spec};

    #[test]
    fn a_fingerprint_changes_with_the_settings_and_survives_being_written() {
        let schedule = |payload: &str| {
            let job = NewJob::from_json("mail", payload.to_owned()).unwrap();
            Schedule::new("nightly", Spec::parse("@daily", "UTC").unwrap(), job)
        };
        let fingerprint = schedule("1").fingerprint();
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!(schedule("1").fingerprint(), fingerprint);
        assert_ne!(schedule("2").fingerprint(), fingerprint);
        assert_ne!(schedule("1").misfire(Misfire::Skip).fingerprint(), fingerprint);
    }
}
