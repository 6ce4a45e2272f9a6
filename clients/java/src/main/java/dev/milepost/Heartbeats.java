package dev.milepost;

import static dev.milepost.Ends.LOG;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Renewal of a worker's lease, and receipt of requests to stop runs. */
final class Heartbeats {
    private final Worker worker;
    private final long leaseMs;
    /** Until when the lease certainly lasts. */
    private volatile long heldUntil;

    Heartbeats(Worker worker) {
        this.worker = worker;
        this.leaseMs = worker.lease.toMillis();
    }

    /** Notes that the lease was renewed by a request that was sent at this time. */
    void renewed(long sentAt) {
        heldUntil = sentAt + worker.lease.toNanos();
    }

    /** Sends heartbeats until the worker is over. */
    void run() throws InterruptedException {
        long pauseMs = 0;
        while (!worker.over.await(pauseMs, TimeUnit.MILLISECONDS)) {
            Long holder = worker.id();
            pauseMs = holder == null ? leaseMs / 15 : beat(holder);
        }
    }

    /** Renews the lease. Returns how long to wait before the next heartbeat, in milliseconds. */
    private long beat(long holder) {
        long sentAt = System.nanoTime();
        long third = leaseMs / 3;
        try {
            Duration left = Duration.ofNanos(Math.max(heldUntil - sentAt, 1_000_000));
            for (Object stop : worker.post(holder, "heartbeat", Transport.json(Map.of()), "stops", Waits.min(Duration.ofMillis(third), left)))
                stopRun(Answer.of(stop));
        } catch (RuntimeException error) { // The lease must be renewed after any error.
            LOG.log(Level.WARNING, error + "; the lease could not be renewed");
            if (Worker.isLost(error) || System.nanoTime() - heldUntil >= 0) worker.lose(holder, error.getMessage());
            return Math.min(Math.max(Waits.after(error, 0).toMillis(), leaseMs / 15), third);
        }
        renewed(sentAt);
        return third;
    }

    private void stopRun(Map<?, ?> stop) {
        String run = Answer.part(stop, "job", String.class) + "." + Answer.part(stop, "token", Long.class) + ".";
        boolean isAbort = "abort".equals(Answer.part(stop, "verb", String.class));
        worker.requestStop(run, isAbort ? Job.Reason.ABORT : Job.Reason.CANCEL);
    }
}
