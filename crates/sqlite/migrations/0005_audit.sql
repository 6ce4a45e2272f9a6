-- Audit: what people and their tools did to the store, beyond what the history of jobs says. Only grows.
CREATE TABLE milepost_audit (
    pos    INTEGER PRIMARY KEY,
    at_ms  INTEGER NOT NULL,
    who    TEXT    NOT NULL,
    what   TEXT    NOT NULL,
    detail TEXT    NOT NULL
) STRICT;
