package dev.milepost;

import static dev.milepost.Ends.LOG;

import java.io.ByteArrayOutputStream;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Reports of the ends of runs, in batches. */
final class Reports {
    /** Limits of a request. The server accepts 1,000 ends and 16 MiB. */
    private static final int ENDS_MAX = 500;

    private static final int BYTES_MAX = 8 << 20;
    private static final Duration HELD_PAUSE_MIN = Duration.ofMillis(100);
    private static final Duration HELD_PAUSE_MAX = Duration.ofSeconds(1);

    private final Worker worker;
    private final Object lock; // That of the worker.
    private final ArrayDeque<Ends.End> ends = new ArrayDeque<>();
    /** Ends that open transactions of other programs hold. */
    private ArrayDeque<Ends.End> held = new ArrayDeque<>();

    Reports(Worker worker) {
        this.worker = worker;
        this.lock = worker.lock;
    }

    /** Adds an end, for a caller that holds the lock. */
    void add(Ends.End end) {
        ends.add(end);
        lock.notifyAll();
    }

    /** Reports ends until the worker is over. */
    void reportEnds() throws InterruptedException {
        while (true) {
            List<Ends.End> batch;
            synchronized (lock) {
                while (ends.isEmpty() && !worker.isOver()) lock.wait();
                if (worker.isOver()) return;
                batch = nextBatch(ends);
            }
            report(batch);
        }
    }

    /** Reports held ends again, until their transactions have ended. A separate thread does this, so that they do not delay other ends. */
    void reportHeld() throws InterruptedException {
        Duration pause = HELD_PAUSE_MIN;
        while (!worker.over.await(pause.toMillis(), TimeUnit.MILLISECONDS)) {
            ArrayDeque<Ends.End> again;
            synchronized (lock) {
                again = held;
                held = new ArrayDeque<>();
            }
            pause = again.isEmpty() ? HELD_PAUSE_MIN : Waits.min(pause.multipliedBy(2), HELD_PAUSE_MAX);
            while (!again.isEmpty()) report(nextBatch(again));
        }
    }

    /** Removes and returns the ends of the next request. They belong to one registration of the worker, because the request names it. */
    private static List<Ends.End> nextBatch(ArrayDeque<Ends.End> ends) {
        List<Ends.End> batch = new ArrayList<>();
        long bytes = 0;
        while (!ends.isEmpty() && batch.size() < ENDS_MAX) {
            Ends.End next = ends.peek();
            bytes += next.json().length + 1;
            if (!batch.isEmpty() && (bytes > BYTES_MAX || next.job().holder != batch.get(0).job().holder)) break;
            batch.add(ends.remove());
        }
        return batch;
    }

    private void report(List<Ends.End> batch) {
        List<Ends.End> waiting = reportUntilAnswered(batch);
        synchronized (lock) {
            held.addAll(waiting);
            for (Ends.End end : batch) {
                Job<?> job = end.job();
                job.held = waiting.stream().anyMatch(one -> one.job() == job);
                job.reported = !job.held;
                worker.release(job);
            }
        }
    }

    /**
     * Reports ends for up to the duration of a lease. After that the worker stops renewing its lease, so that it expires and the jobs are retried.
     * An end that the server rejects is reported as a failure. Returns the ends that an open transaction holds.
     */
    private List<Ends.End> reportUntilAnswered(List<Ends.End> batch) {
        long until = System.nanoTime() + worker.lease.toNanos();
        for (int failures = 0; ; failures++) {
            RuntimeException why;
            try {
                return answered(batch, send(batch, Math.max(Math.min(worker.lease.toNanos() / 3, until - System.nanoTime()), 1_000_000)));
            } catch (RuntimeException error) { // The ends must be reported after any error.
                why = error;
            }
            if (isRejected(why) && batch.size() > 1) {
                int half = batch.size() / 2;
                List<Ends.End> waiting = new ArrayList<>(reportUntilAnswered(batch.subList(0, half)));
                waiting.addAll(reportUntilAnswered(batch.subList(half, batch.size())));
                return waiting;
            }
            if (isRejected(why)) batch = List.of(asRejected(batch.get(0), why));
            long left = until - System.nanoTime();
            if (left <= 0 || batch.stream().noneMatch(end -> worker.isHolder(end.job().holder))) {
                LOG.log(Level.ERROR, "the ends of " + batch.size() + " runs could not be reported: " + why);
                for (Ends.End end : batch) worker.lose(end.job().holder, "ends of runs could not be reported");
                return List.of();
            }
            LOG.log(Level.WARNING, why + "; reporting the ends of runs again");
            Waits.sleep(Waits.min(Waits.after(why, failures), Duration.ofNanos(left)));
        }
    }

    private List<?> send(List<Ends.End> batch, long limitNs) {
        if (batch.size() == 1 && batch.get(0).json().length > BYTES_MAX)
            throw new ProblemException(413, "body_too_large", "the end has more than " + BYTES_MAX + " bytes", null, Duration.ZERO);
        var body = new ByteArrayOutputStream();
        body.writeBytes("{\"runs\":[".getBytes(StandardCharsets.UTF_8));
        for (int n = 0; n < batch.size(); n++) {
            if (n > 0) body.write(',');
            body.writeBytes(batch.get(n).json());
        }
        body.writeBytes("]}".getBytes(StandardCharsets.UTF_8));
        List<?> answers = worker.post(batch.get(0).job().holder, "finish", body.toByteArray(), "runs", Duration.ofNanos(limitNs));
        if (answers.size() != batch.size())
            throw new UnreachableException("the answer is not from Milepost: it answers " + answers.size() + " of " + batch.size() + " ends", null);
        return answers;
    }

    private List<Ends.End> answered(List<Ends.End> batch, List<?> answers) {
        List<Ends.End> waiting = new ArrayList<>();
        for (int n = 0; n < batch.size(); n++) {
            Ends.End end = batch.get(n);
            Job<?> job = end.job();
            boolean isFenced = "fenced".equals(answers.get(n));
            if ("held".equals(answers.get(n))) waiting.add(end);
            else if (isFenced && !end.isOfCompleted())
                LOG.log(Level.WARNING, "job " + job.id() + " (" + job.kind() + "): the end of attempt " + job.attempt() + " was ignored: "
                    + worker.whyIgnored(job));
            else if (!isFenced && end.isOfCompleted()) Ends.log(end);
        }
        return waiting;
    }

    private static boolean isRejected(RuntimeException why) {
        return why instanceof ProblemException problem && (problem.status() == 400 || problem.status() == 413 || problem.status() == 422);
    }

    /** Returns a failure in the place of an end that the server rejects. It is logged once. */
    private Ends.End asRejected(Ends.End end, RuntimeException why) {
        Ends.End rejected = Ends.end(end.job(), Ends.failure(Ends.NOT_TAKEN, why.getMessage()), null, worker.backoffs);
        if (!Arrays.equals(end.json(), rejected.json())) Ends.log(rejected);
        return rejected;
    }
}
