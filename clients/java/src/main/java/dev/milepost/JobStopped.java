package dev.milepost;

/**
 * Thrown by {@link Job#check}: a stop was requested, the time limit was exceeded, or this worker has lost the job. It is an {@link Error}, so that
 * {@code catch (Exception e)} in a handler does not catch it.
 */
public final class JobStopped extends Error {
    JobStopped(String reason) {
        super(reason);
    }
}
