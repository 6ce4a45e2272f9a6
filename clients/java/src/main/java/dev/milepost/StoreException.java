package dev.milepost;

import java.sql.SQLException;
import java.util.Optional;

/**
 * An SQL function failed. The subclass is the kind of fault, from the SQLSTATE; other faults, such as a lost connection, have no subclass. After
 * each of them, PostgreSQL refuses all further statements of the transaction: roll it back.
 */
public class StoreException extends MilepostException {
    private final String sqlState;
    private final String detail;

    StoreException(String message, String sqlState, String detail, Throwable cause) {
        super(message, cause);
        this.sqlState = sqlState;
        this.detail = detail;
    }

    /** Returns the SQLSTATE, such as {@code MP001}; empty if the database has not reported one. */
    public Optional<String> sqlState() {
        return Optional.ofNullable(sqlState);
    }

    /** Returns the DETAIL of the error, such as a job's state after {@code MP003}. */
    public Optional<String> detail() {
        return Optional.ofNullable(detail);
    }

    /** An argument cannot be accepted as it is; the message contains its place and the fault. Correct the call. */
    public static final class Refused extends StoreException {
        Refused(Fault fault) {
            super(fault);
        }
    }

    /** There is no such job, bulk job, DAG, version, batch or task. */
    public static final class NotFound extends StoreException {
        NotFound(Fault fault) {
            super(fault);
        }
    }

    /** The state of the job, the batch or the bulk job does not allow the call; {@link #detail} can contain the state. */
    public static final class WrongState extends StoreException {
        WrongState(Fault fault) {
            super(fault);
        }
    }

    /** The event contradicts the log: its sequence does not follow, or its id belongs to an event with other content. */
    public static final class EventConflict extends StoreException {
        EventConflict(Fault fault) {
            super(fault);
        }
    }

    /** A job with this id exists: the call was made before. */
    public static final class DuplicateId extends StoreException {
        DuplicateId(Fault fault) {
            super(fault);
        }
    }

    /** A serialization failure or a deadlock; nothing was stored. Repeat the whole transaction. */
    public static final class RepeatTransaction extends StoreException {
        RepeatTransaction(Fault fault) {
            super(fault);
        }
    }

    /** The store is being filled by {@code milepost move}. Repeat the transaction when the move has ended. */
    public static final class Moves extends StoreException {
        Moves(Fault fault) {
            super(fault);
        }
    }

    /** The database has no such function: it was not prepared, or has an older version. Run {@code milepost migrate}. */
    public static final class NotInstalled extends StoreException {
        NotInstalled(Fault fault) {
            super(fault);
        }
    }

    /** The account has no right to call the function. Grant it the role that the call needs: {@code milepost_app} or {@code milepost_worker}. */
    public static final class NotPermitted extends StoreException {
        NotPermitted(Fault fault) {
            super(fault);
        }
    }

    /** The job no longer runs with this run token: another attempt runs, or the job was stopped. Roll back. */
    public static final class Fenced extends StoreException {
        Fenced(String message) {
            super(message, null, null, null);
        }
    }

    /** What the database reported. */
    record Fault(String message, String sqlState, String detail, SQLException cause) {}

    private StoreException(Fault fault) {
        super(fault.message, fault.cause);
        this.sqlState = fault.sqlState;
        this.detail = fault.detail;
    }

    /** Returns the exception for an error of the database. This is the only place that interprets SQLSTATEs. */
    static StoreException of(SQLException cause) {
        String state = cause.getSQLState() == null ? "" : cause.getSQLState();
        String message = part(cause, "getMessage");
        String hint = part(cause, "getHint");
        String words = message == null ? cause.getMessage() : message + (hint == null ? "" : "; " + hint);
        Fault fault = new Fault(words, cause.getSQLState(), part(cause, "getDetail"), cause);
        return switch (state) {
            case "MP001", "MP011", "MP015", "MP018", "22P02", "22P05", "22021", "22007", "22008" -> new Refused(fault);
            case "MP002", "MP007", "MP010" -> new NotFound(fault);
            case "MP003", "MP008", "MP012", "MP013", "MP014" -> new WrongState(fault);
            case "MP004" -> new Moves(fault);
            case "MP016", "MP017" -> new EventConflict(fault);
            case "MP019" -> "missing".equals(firstWord(fault.detail)) ? new NotFound(fault) : new WrongState(fault);
            case "40001", "40P01" -> new RepeatTransaction(fault);
            case "42501" -> new NotPermitted(new Fault(message + "; grant the account milepost_app or milepost_worker", state, fault.detail, cause));
            case "3F000", "42883" -> new NotInstalled(new Fault(message + "; run `milepost migrate`", state, fault.detail, cause));
            case "23505" -> isOfJob(cause) ? new DuplicateId(fault) : new StoreException(fault);
            default -> new StoreException(fault);
        };
    }

    /** An id of a job is used twice: these constraints of the tables of jobs are violated. */
    private static boolean isOfJob(SQLException cause) {
        return cause.getMessage().contains("\"live_pkey\"") || cause.getMessage().contains("\"job_pkey\"");
    }

    private static String firstWord(String detail) {
        return detail == null ? "" : detail.split(" ", 2)[0];
    }

    /**
     * Returns a part of the error that the server has sent, such as its DETAIL; {@code null} if it has none. JDBC has no method for it: PostgreSQL's
     * driver has {@code PSQLException.getServerErrorMessage().getDetail()}.
     */
    private static String part(SQLException cause, String getter) {
        try {
            Object message = cause.getClass().getMethod("getServerErrorMessage").invoke(cause);
            return message == null ? null : (String) message.getClass().getMethod(getter).invoke(message);
        } catch (ReflectiveOperationException | ClassCastException notThisDriver) {
            return null;
        }
    }
}
