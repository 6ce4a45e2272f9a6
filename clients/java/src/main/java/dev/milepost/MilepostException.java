package dev.milepost;

/** Base of all errors that this package reports. They are unchecked, so that {@code @Transactional} of Spring rolls back after them. */
public abstract class MilepostException extends RuntimeException {
    MilepostException(String message, Throwable cause) {
        super(message, cause);
    }
}
