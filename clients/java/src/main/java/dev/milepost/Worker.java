package dev.milepost;

import static dev.milepost.Ends.LOG;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Runs jobs through the HTTP API: claims them, calls their handlers, each in a thread, renews its lease and reports the ends of runs.
 *
 * <p>Call {@link #run} in a thread of yours, or {@link #start} and later {@link #close}. A worker runs once.
 */
public final class Worker implements Runnable, AutoCloseable {
    /** Interval between queries for the jobs that the server has assigned to this worker. */
    private static final Duration QUERY_EVERY = Duration.ofSeconds(30);

    private static final int CLAIM_MAX = 500; // Maximum number of jobs that the server returns for a claim.
    private static final int HELD_MAX = 2_000; // Maximum number of held ends that occupy no places.
    private static final int TRIES = 4;
    private static final Duration ANSWER_MAX = Duration.ofSeconds(30);

    final Client client;
    final Duration lease;
    final Map<String, Backoff> backoffs;
    final Object lock = new Object(); // Guards the state of the worker and its jobs, and is notified when they change.
    final CountDownLatch over = new CountDownLatch(1);
    private final WorkerBuilder settings;
    private final Reports reports;
    private final Heartbeats heartbeats;
    private final ScheduledThreadPoolExecutor deadlines = new ScheduledThreadPoolExecutor(1, run -> Threads.daemon("milepost-deadlines", run));
    private final CountDownLatch ended = new CountDownLatch(1);

    /** The id of the registration, while the worker holds a lease. */
    private volatile Long id;

    private volatile boolean stopping;
    private boolean begun;
    /** When to query the assigned jobs: immediately after a claim whose result is unknown. Used by the claiming thread only. */
    private long queryAt = System.nanoTime();

    /** Jobs whose handler has not returned or whose end is not reported, by run. */
    private final Map<String, Job<?>> running = new LinkedHashMap<>();
    /** Runs whose handler has returned and whose end is held. */
    private final Set<String> apart = new HashSet<>();

    Worker(WorkerBuilder settings) {
        this.settings = settings;
        this.client = settings.client;
        this.lease = settings.lease;
        this.backoffs = Map.copyOf(settings.backoffs);
        this.reports = new Reports(this);
        this.heartbeats = new Heartbeats(this);
        deadlines.setRemoveOnCancelPolicy(true);
    }

    /** Begins the settings of a worker that uses this client, and its codec for payloads and results. */
    public static WorkerBuilder builder(Client client) {
        return new WorkerBuilder(client);
    }

    /** Runs jobs in a new thread until {@link #close} or {@link #stop} is called. */
    public Worker start() {
        var thread = new Thread(() -> {
            try {
                run();
            } catch (RuntimeException refused) {
                LOG.log(Level.ERROR, "worker " + settings.name + " has ended: " + refused.getMessage(), refused);
            }
        }, "milepost-worker");
        thread.start();
        return this;
    }

    /** Stops claiming jobs; {@link #run} returns when the running jobs have ended. Returns immediately. */
    public void stop() {
        stopping = true;
        synchronized (lock) {
            lock.notifyAll();
        }
    }

    /** Calls {@link #stop}, and waits until the running jobs have ended. An idle worker ends when its last claim is answered. */
    @Override
    public void close() {
        stop();
        synchronized (lock) {
            if (!begun) return;
        }
        try {
            ended.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Runs jobs until {@link #stop} is called or the thread is interrupted, then waits for the running ones.
     *
     * @throws ProblemException if the server rejects the registration
     * @throws IllegalStateException if the worker was run before
     */
    @Override
    public void run() {
        synchronized (lock) {
            if (begun) throw new IllegalStateException("a worker runs once; build another one");
            begun = true;
        }
        List<Thread> beside = List.of(
            Threads.background("milepost-heartbeats", heartbeats::run), Threads.background("milepost-ends", reports::reportEnds),
            Threads.background("milepost-held-ends", reports::reportHeld));
        boolean wasInterrupted = false;
        try {
            while (!stopping) {
                step(id);
                wasInterrupted |= Thread.interrupted();
                stopping |= wasInterrupted;
            }
            wasInterrupted |= !awaitRunning();
        } finally {
            over.countDown();
            synchronized (lock) {
                lock.notifyAll();
            }
            beside.forEach(Threads::join);
            deadlines.shutdownNow();
            deregister();
            LOG.log(Level.INFO, "worker " + settings.name + " has stopped");
            ended.countDown();
            if (wasInterrupted) Thread.currentThread().interrupt();
        }
    }

    /** Waits until no job runs, whatever interrupts. Returns whether nothing has. */
    private boolean awaitRunning() {
        boolean undisturbed = true;
        synchronized (lock) {
            while (!running.isEmpty()) {
                try {
                    lock.wait();
                } catch (InterruptedException interrupted) {
                    undisturbed = false;
                }
            }
        }
        return undisturbed;
    }

    private void deregister() {
        if (id == null) return;
        try {
            client.timeout(Duration.ofSeconds(5)).ask("DELETE", "/v1/workers/" + id, null, TRIES);
        } catch (MilepostException error) {
            LOG.log(Level.DEBUG, "the worker could not be deregistered", error); // Its lease expires.
        }
    }

    /** Registers the worker, or claims jobs if it is registered. Waits after an error. */
    private void step(Long holder) {
        try {
            if (holder == null) register();
            else claim(holder);
        } catch (MilepostException error) {
            if (holder == null && !Waits.passes(error)) throw error;
            if (holder != null && isLost(error)) {
                lose(holder, error.getMessage());
                return;
            }
            if (Thread.currentThread().isInterrupted()) return;
            queryAt = System.nanoTime();
            LOG.log(Level.WARNING, error.getMessage() + "; trying again");
            pause(Waits.max(Waits.after(error, 0), Duration.ofSeconds(1)));
        }
    }

    private void register() {
        Map<String, Object> body = settings.serves();
        body.put("name", settings.name);
        body.put("lease_ms", lease.toMillis());
        body.put("slots", settings.concurrency);
        body.put("backoffs", settings.backoffBodies());
        long sentAt = System.nanoTime();
        long registered = Answer.part(Answer.of(client.ask("POST", "/v1/workers", body)), "id", Long.class);
        heartbeats.renewed(sentAt);
        id = registered;
        LOG.log(Level.INFO, "worker " + settings.name + " is registered at " + client.address() + "; queues: " + String.join(", ", settings.queues)
            + "; kinds: " + String.join(", ", settings.handlers.keySet()));
    }

    /** Stops the running jobs, because other workers take them over, and reports nothing more about them. {@code run} registers again. */
    void lose(long holder, String why) {
        synchronized (lock) {
            if (!isHolder(holder)) return;
            id = null;
            for (Job<?> job : running.values()) if (!job.ended) requestStop(job, Job.Reason.LOST);
        }
        LOG.log(Level.ERROR, "the lease is lost: " + why + "; stopping the running jobs, which will be retried");
    }

    /**
     * Returns the number of free places, for a caller that holds the lock. A place is occupied until the handler has returned and the end is
     * reported. Held ends occupy places only beyond the first {@link #HELD_MAX}.
     */
    private int free() {
        return settings.concurrency - running.size() + Math.min(apart.size(), HELD_MAX);
    }

    /** Claims up to as many jobs as there are free places, and waits if there are none. */
    private void claim(long holder) {
        int free;
        synchronized (lock) {
            if (free() <= 0) pauseLocked(1_000);
            free = Math.min(free(), CLAIM_MAX);
        }
        if (free <= 0 || stopping) return;
        List<?> claimed = System.nanoTime() - queryAt >= 0 ? adopt(holder, free) : List.of();
        if (claimed.isEmpty()) {
            Map<String, Object> body = settings.serves();
            body.put("limit", free);
            body.put("wait_ms", settings.wait.toMillis());
            claimed = post(holder, "claim", Transport.json(body), "jobs", settings.wait.plus(ANSWER_MAX));
        }
        List<Job<?>> jobs = new ArrayList<>();
        for (Object one : claimed) jobs.add(new Job<>(this, holder, Answer.of(one)));
        synchronized (lock) {
            if (!isHolder(holder)) return; // Start nothing if the lease was lost in between.
            for (Job<?> job : jobs) running.put(job.run, job);
        }
        for (Job<?> job : jobs) Threads.daemon("milepost-job-" + job.id(), () -> runOne(job, settings.handlers.get(job.kind()))).start();
    }

    /** Returns jobs that the server has assigned to this worker but the worker does not know: the response to their claim was lost. */
    private List<?> adopt(long holder, int free) {
        Set<String> known;
        synchronized (lock) { // Before the request, so that a run that ends in between is known.
            known = new HashSet<>(running.keySet());
        }
        List<?> held = Answer.list(client.ask("GET", "/v1/workers/" + holder + "/jobs", null), "jobs");
        List<?> unknown = held.stream().filter(job -> !known.contains(Answer.part(Answer.of(job), "run", String.class))).toList();
        queryAt = System.nanoTime() + (unknown.size() > free ? 0 : QUERY_EVERY.toNanos());
        return unknown.subList(0, Math.min(free, unknown.size()));
    }

    private <P> void runOne(Job<?> claimed, WorkerBuilder.Registered<P> registered) {
        @SuppressWarnings("unchecked") // The payload is not set yet.
        Job<P> job = (Job<P>) claimed;
        ScheduledFuture<?> deadline = job.timeout()
            .map(limit -> deadlines.schedule(() -> timeOut(job), limit.toMillis(), TimeUnit.MILLISECONDS)).orElse(null);
        Ends.End end;
        try {
            end = Ends.returned(job, handled(job, registered), client.codec(), backoffs);
        } catch (Throwable error) { // Any error of a handler ends its attempt.
            end = Ends.thrown(job, error, backoffs);
        }
        if (deadline != null) deadline.cancel(false);
        if (end(end) && !end.isOfCompleted()) Ends.log(end);
        synchronized (lock) {
            job.returned = true;
            release(job);
        }
    }

    private <P> Object handled(Job<P> job, WorkerBuilder.Registered<P> registered) throws Exception {
        try {
            job.read(registered.type());
        } catch (Json.Malformed misfit) {
            throw new Failed("payload", misfit.getMessage()).permanent().because(misfit);
        }
        synchronized (lock) {
            job.thread = Thread.currentThread();
            if (job.reason != null) job.thread.interrupt();
        }
        try {
            return registered.handler().run(job);
        } finally {
            synchronized (lock) {
                job.thread = null;
            }
            Thread.interrupted(); // The end is reported in any case.
        }
    }

    /** Ends a job that has exceeded its time limit. Its thread keeps its place until the handler returns; the result of the handler is ignored. */
    private void timeOut(Job<?> job) {
        String outcome = job.reason == null ? null : job.reason.outcome;
        Map<String, Object> late = Ends.failure("timeout", "the attempt took longer than " + job.timeout().orElseThrow().toMillis() + " ms");
        Ends.End end = Ends.end(job, outcome == null ? late : Map.of("outcome", outcome), null, backoffs);
        // In this order: the handler's reaction to the stop request must not be reported first.
        boolean isDecided = end(end);
        requestStop(job, Job.Reason.TIMEOUT);
        if (isDecided) Ends.log(end);
    }

    /** Decides the end of a run. Returns {@code false} if another end was decided before. */
    private boolean end(Ends.End end) {
        synchronized (lock) {
            Job<?> job = end.job();
            if (job.ended) return false;
            job.ended = true;
            if (job.reason == Job.Reason.LOST) job.reported = true;
            else reports.add(end);
            return true;
        }
    }

    /** Frees the place of a job that has ended, for a caller that holds the lock. */
    void release(Job<?> job) {
        if (job.returned && job.reported) {
            running.remove(job.run);
            apart.remove(job.run);
        } else if (job.returned && job.held) apart.add(job.run);
        lock.notifyAll();
    }

    /** Marks a job as to be stopped, and interrupts its handler. */
    void requestStop(Job<?> job, Job.Reason reason) {
        synchronized (lock) {
            if (job.reason != Job.Reason.LOST) job.reason = reason;
            if (job.thread != null) job.thread.interrupt();
        }
    }

    String whyIgnored(Job<?> job) {
        if (job.reason != null && job.reason.outcome != null) return "the job was " + job.reason.outcome;
        if (!isHolder(job.holder)) return "this worker had lost its lease, and the job was taken over";
        return "the job was taken over, or an operator or another program had ended it";
    }

    boolean isHolder(long holder) {
        Long now = id;
        return now != null && now == holder;
    }

    /** Returns the id of the registration; {@code null}: the worker holds no lease. */
    Long id() {
        return id;
    }

    boolean isOver() {
        return over.getCount() == 0;
    }

    /** Sends a request for a registration, and returns the list {@code answers} of the response. */
    List<?> post(long holder, String verb, byte[] body, String answers, Duration limit) {
        return Answer.list(client.askWithin(limit, "POST", "/v1/workers/" + holder + "/" + verb, body), answers);
    }

    /** Reports progress or a checkpoint. Returns whether the server has stored it. */
    boolean reportRun(Job<?> job, Map<String, ?> report) {
        Object answer = client.ask("POST", "/v1/workers/" + job.holder + "/report", Map.of("runs", List.of(report)), TRIES);
        return Answer.list(answer, "accepted").equals(List.of(true));
    }

    /** Asks the runs of a job's claim to stop. {@code run}: the beginning of their identifiers. */
    void requestStop(String run, Job.Reason reason) {
        synchronized (lock) {
            for (Job<?> job : running.values()) if (job.run.startsWith(run)) requestStop(job, reason);
        }
    }

    static boolean isLost(RuntimeException error) {
        return error instanceof ProblemException problem && "worker_lost".equals(problem.code());
    }

    private void pause(Duration duration) {
        long until = System.nanoTime() + duration.toNanos();
        synchronized (lock) {
            for (long left; !stopping && (left = until - System.nanoTime()) > 0; )
                if (!pauseLocked(left / 1_000_000 + 1)) return;
        }
    }

    /** Waits for a change, for a caller that holds the lock. Returns {@code false} if the thread was interrupted, which it then still is. */
    private boolean pauseLocked(long ms) {
        try {
            lock.wait(ms);
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
