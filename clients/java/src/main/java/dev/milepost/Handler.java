package dev.milepost;

/**
 * What runs jobs of a kind. It runs at least once for each job: make its effects idempotent, or complete the job in their transaction.
 *
 * @param <P> the type of the payload
 */
@FunctionalInterface
public interface Handler<P> {
    /**
     * Runs a job.
     *
     * @return the result of the job, which the codec converts to JSON; can be {@code null}
     * @throws Exception any exception fails the attempt; {@link Failed} with a dedicated code, {@link Snooze} releases the job until later
     */
    Object run(Job<P> job) throws Exception;
}
