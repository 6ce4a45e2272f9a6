package dev.milepost;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** Ends of runs: what is reported after a handler has returned or thrown, and what is logged. */
final class Ends {
    /** Error code of a run whose end is not JSON, or is rejected by the server. */
    static final String NOT_TAKEN = "end_not_taken";

    static final Logger LOG = System.getLogger("milepost");
    private static final int CODE_CHARS_MAX = 200;
    private static final int MESSAGE_CHARS_MAX = 10_000;
    private static final int LOGGED_CHARS_MAX = 1_000;
    private static final int TRACE_CHARS_MAX = 2_000;
    private static final int FRAMES_MAX = 5;

    private Ends() {}

    /** The end of a run, as it is reported, and the error that the handler threw. */
    record End(Job<?> job, Map<String, Object> content, byte[] json, Throwable error) {
        /** Whether the end reports that a completion was not committed: the server ignores it if it was. */
        boolean isOfCompleted() {
            return "not_committed".equals(content.get("error_code")) && job.completes;
        }
    }

    /** Returns the end of a run whose handler has returned. A result that is not JSON fails the run. */
    static End returned(Job<?> job, Object result, Codec codec, Map<String, Backoff> backoffs) {
        if (job.completes)
            return end(job, failure("not_committed", "the handler has called complete, and its transaction was not committed"), null, backoffs);
        try {
            return end(job, Map.of("outcome", "succeeded", "result", new Json.Text(Codecs.encode(codec, result, "the result"))), null, backoffs);
        } catch (Throwable fault) { // The result can be an object of any class.
            return end(job, failure(NOT_TAKEN, "the result is not JSON: " + described(fault)), fault, backoffs);
        }
    }

    /** Returns the end of a run whose handler has thrown. Each run gets an end, also after an error that cannot be described. */
    static End thrown(Job<?> job, Throwable error, Map<String, Backoff> backoffs) {
        String outcome = job.reason == null ? null : job.reason.outcome;
        if (error instanceof Snooze snooze)
            return end(job, Map.of("outcome", "snoozed", "delay_ms", ms(snooze.delay()), "message", text(snooze.getMessage(), MESSAGE_CHARS_MAX)), error,
                backoffs);
        if (error instanceof JobStopped || error instanceof InterruptedException && outcome != null)
            return end(job, Map.of("outcome", outcome == null ? "canceled" : outcome), error, backoffs);
        if (!(error instanceof Failed failed)) return end(job, failure(codeOf(error), trace(error)), error, backoffs);
        Map<String, Object> content = failure(failed.code(), failed.getMessage());
        content.put("retryable", failed.retryable());
        if (failed.delay() != null) content.put("delay_ms", ms(failed.delay()));
        return end(job, content, error, backoffs);
    }

    static End end(Job<?> job, Map<String, Object> content, Throwable error, Map<String, Backoff> backoffs) {
        Map<String, Object> all = new LinkedHashMap<>(content);
        all.put("run", job.run);
        Backoff backoff = backoffs.get(job.kind());
        if (backoff != null && "failed".equals(content.get("outcome"))) all.put("backoff", backoff.body());
        return new End(job, content, Json.write(all).getBytes(StandardCharsets.UTF_8), error);
    }

    static Map<String, Object> failure(String code, String message) {
        Map<String, Object> content = new LinkedHashMap<>();
        String shown = text(code, CODE_CHARS_MAX);
        content.put("outcome", "failed");
        content.put("error_code", shown.isEmpty() ? "failed" : shown);
        content.put("message", text(message, MESSAGE_CHARS_MAX));
        return content;
    }

    /** Logs an end if it is a failure. The log contains the stack trace of an error that is no {@link Failed}; that of a `Failed` at level DEBUG. */
    static void log(End end) {
        Job<?> job = end.job;
        if (!"failed".equals(end.content.get("outcome"))) return;
        boolean isPermanent = job.attempt() >= job.maxAttempts() || Boolean.FALSE.equals(end.content.get("retryable"));
        String then = job.reason == Job.Reason.LOST ? "this is not reported, because the worker has lost the job"
            : job.reason != null && job.reason.outcome != null ? "no attempt follows, because a stop was requested"
            : isPermanent ? "no attempt follows" : "another attempt follows";
        boolean isExpected = end.error == null || end.error instanceof Failed || NOT_TAKEN.equals(end.content.get("error_code"));
        String why = isExpected ? end.content.get("error_code") + ": " + end.content.get("message") : described(end.error);
        Throwable shown = isExpected && !LOG.isLoggable(Level.DEBUG) ? null : end.error;
        LOG.log(Level.WARNING, "job " + job.id() + " (" + job.kind() + "): attempt " + job.attempt() + " of " + job.maxAttempts() + " failed; " + then
            + ": " + text(why, LOGGED_CHARS_MAX), shown);
    }

    /** Returns text that the server accepts: halves of surrogate pairs and NUL characters are replaced. */
    static String text(String words, int charsMax) {
        if (words == null) return "";
        String begin = words.length() > charsMax ? words.substring(0, charsMax) : words;
        int[] points = begin.codePoints().map(point -> point == 0 || JsonReader.isHalfPair(point) ? 0xFFFD : point).toArray();
        return new String(points, 0, points.length);
    }

    private static String codeOf(Throwable error) {
        String name = error.getClass().getSimpleName();
        return name.isEmpty() ? error.getClass().getName() : name; // An anonymous class has no simple name.
    }

    /** Returns the error, its causes, and for each the innermost frames. */
    private static String trace(Throwable error) {
        try {
            var out = new StringBuilder();
            String before = "";
            Throwable next = error;
            for (int n = 0; n < FRAMES_MAX && next != null; n++, next = next.getCause()) {
                out.append(before).append(next);
                StackTraceElement[] frames = next.getStackTrace();
                for (int frame = 0; frame < Math.min(frames.length, FRAMES_MAX); frame++) out.append("\n    at ").append(frames[frame]);
                before = "\ncaused by: ";
            }
            return out.length() > TRACE_CHARS_MAX ? out.substring(0, TRACE_CHARS_MAX) : out.toString();
        } catch (Throwable indescribable) { // For example, a `toString` that throws.
            return "the error that the handler threw cannot be described";
        }
    }

    private static String described(Throwable error) {
        try {
            return error.toString();
        } catch (Throwable indescribable) {
            return error.getClass().getName();
        }
    }

    /** The server reduces long delays to a hundred years. */
    private static long ms(Duration delay) {
        if (delay.isNegative()) return 0;
        return delay.getSeconds() > Long.MAX_VALUE / 2000 ? Long.MAX_VALUE : delay.toMillis();
    }
}
