//! What somebody may have meant.

/// How much alike two names must be, from 0 to 1.
const LIKENESS_MIN: f64 = 0.8;

/// The known name that is most like this one, when one is like it at all.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let likeness = |known: &str| strsim::jaro_winkler(&plain(name), &plain(known));
    let nearest = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(nearest) > LIKENESS_MIN).then_some(nearest)
}
