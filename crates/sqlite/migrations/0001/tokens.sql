-- Access tokens of servers, and console sessions of users who signed in with a token.

-- prefix: the public part of the token. hash: SHA-256 of the whole token, whose other part is 256 random bits. Rows are never deleted, so
-- that actions recorded under the token's name can be traced.
CREATE TABLE milepost_access_token (
    prefix          TEXT    PRIMARY KEY NOT NULL,
    name            TEXT    NOT NULL,
    hash            BLOB    NOT NULL CHECK (length(hash) = 32),
    role            TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'worker')),
    created_at_ms   INTEGER NOT NULL,
    created_by      TEXT    NOT NULL,
    starts_at_ms    INTEGER NOT NULL,
    expires_at_ms   INTEGER,
    revoked_at_ms   INTEGER,
    last_used_at_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX milepost_access_token_name ON milepost_access_token (name) WHERE revoked_at_ms IS NULL;

-- id: SHA-256 of the session id in the browser; former_id: that of the previous session id, which stays valid briefly after rotated_at_ms.
CREATE TABLE milepost_console_session (
    id            BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 32),
    former_id     BLOB    UNIQUE,
    token         TEXT    NOT NULL REFERENCES milepost_access_token,
    csrf          TEXT    NOT NULL,
    began_at_ms   INTEGER NOT NULL,
    seen_at_ms    INTEGER NOT NULL,
    rotated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_console_session_token ON milepost_console_session (token);
CREATE INDEX milepost_console_session_began ON milepost_console_session (began_at_ms);
