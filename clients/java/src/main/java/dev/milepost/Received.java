package dev.milepost;

/**
 * The answer of the inbox to an event. Commit in every case, and then acknowledge the message to the broker.
 *
 * @param more whether events that came too early may follow now: call {@link Milepost#nextParked} until it returns none
 */
public record Received(Verdict verdict, boolean more) {
    /** What to do with an event. */
    public enum Verdict {
        /** It is the next one: apply it in this transaction. */
        APPLY,
        /** It was received before: do nothing. */
        DUPLICATE,
        /** An earlier event is missing, and the inbox has stored this one: do nothing. */
        PARKED,
        /** The consumer has skipped it, or another event has its sequence; it is a dead letter: do nothing. */
        LATE
    }

    /** Returns whether the event must be applied in this transaction. */
    public boolean apply() {
        return verdict == Verdict.APPLY;
    }
}
