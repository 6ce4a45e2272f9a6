-- How many seconds the replica that is furthest behind is, and whether that can be seen at all: without the rights of
-- pg_monitor the server tells only that there are replicas.
select coalesce(extract(epoch from max(replay_lag)), 0)::float8, count(*) = count(state)
from pg_stat_replication
