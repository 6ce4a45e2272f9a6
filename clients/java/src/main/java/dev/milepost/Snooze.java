package dev.milepost;

import java.time.Duration;

/** Thrown by a handler: releases the job for the given time; the attempt does not count. */
public final class Snooze extends RuntimeException {
    private final Duration delay;

    /** @param why a text for the job's history */
    public Snooze(Duration delay, String why) {
        super(why);
        this.delay = delay;
    }

    Duration delay() {
        return delay;
    }
}
