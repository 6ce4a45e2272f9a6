package dev.milepost;

/** The server did not answer. It may or may not have executed the request. */
public final class UnreachableException extends MilepostException {
    UnreachableException(String message, Throwable cause) {
        super(message, cause);
    }
}
