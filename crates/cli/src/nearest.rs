//! Suggestions for mistyped names.

/// The minimum similarity of two names, from 0 to 1.
const LIKENESS_MIN: f64 = 0.8;

/// Returns the most similar known name, if any is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let likeness = |known: &str| strsim::jaro_winkler(&plain(name), &plain(known));
    let nearest = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) > LIKENESS_MIN).then_some(nearest)
}
