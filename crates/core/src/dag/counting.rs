//! Counts how many tasks and edges are looked at, so that tests can say what is linear without measuring time.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// One task and so many of its edges are looked at.
#[inline]
pub(super) fn look(edges: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1 + edges);
    #[cfg(not(test))]
    let _ = edges;
}

/// How many steps `work` takes.
#[cfg(test)]
pub(super) fn steps_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = STEPS.get();
    let done = work();
    (done, STEPS.get() - before)
}
