-- The queues and kinds that a token is limited to, as JSON; NULL: all. The hash of a limited token is the hash of the hash of its secret, so that
-- servers of earlier releases do not find it.
ALTER TABLE milepost_access_token ADD COLUMN scope TEXT CHECK (length(scope) <= 65536);
