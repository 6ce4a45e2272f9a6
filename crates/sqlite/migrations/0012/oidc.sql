-- Console sessions of people whom an OpenID Connect provider identified, and their sign-ins in progress.

-- A session has either a token or a person. person: the name in the audit without its prefix. granted_by: the hash of the rule of the
-- configuration that grants the role.
CREATE TABLE milepost_console_session_next (
    id            BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 32),
    former_id     BLOB    UNIQUE,
    token         TEXT    REFERENCES milepost_access_token,
    csrf          TEXT    NOT NULL,
    began_at_ms   INTEGER NOT NULL,
    seen_at_ms    INTEGER NOT NULL,
    rotated_at_ms INTEGER NOT NULL,
    person        TEXT,
    role          TEXT    CHECK (role IN ('viewer', 'operator', 'admin')),
    granted_by    BLOB    CHECK (length(granted_by) = 32),
    CHECK ((token IS NULL) = (person IS NOT NULL) AND (person IS NULL) = (role IS NULL) AND (person IS NULL) = (granted_by IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO milepost_console_session_next (id, former_id, token, csrf, began_at_ms, seen_at_ms, rotated_at_ms)
SELECT id, former_id, token, csrf, began_at_ms, seen_at_ms, rotated_at_ms FROM milepost_console_session;
DROP TABLE milepost_console_session;
ALTER TABLE milepost_console_session_next RENAME TO milepost_console_session;
CREATE INDEX milepost_console_session_token ON milepost_console_session (token);
CREATE INDEX milepost_console_session_began ON milepost_console_session (began_at_ms);

-- id: SHA-256 of the value in the browser's cookie; state: SHA-256 of the state that the provider returns.
CREATE TABLE milepost_console_sign_in (
    id          BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 32),
    state       BLOB    NOT NULL CHECK (length(state) = 32),
    nonce       TEXT    NOT NULL,
    verifier    TEXT    NOT NULL,
    next        TEXT    NOT NULL,
    began_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_console_sign_in_began ON milepost_console_sign_in (began_at_ms);
