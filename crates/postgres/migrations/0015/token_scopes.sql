-- The queues and kinds that a token is limited to, as JSON; null: all. The hash of a limited token is the hash of the hash of its secret, so that
-- servers of earlier releases do not find it.
alter table milepost.access_token add column scope text check (length(scope) <= 65536);
