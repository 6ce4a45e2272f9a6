-- The lag in seconds of the slowest replica, and whether the lags are visible: without the privileges of pg_monitor the
-- server shows only the existence of replicas.
select coalesce(extract(epoch from max(replay_lag)), 0)::float8, count(*) = count(state)
from pg_stat_replication
