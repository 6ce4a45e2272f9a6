-- Whether all who were writing when bulk job $1 began have ended, and which sessions have not.
select pg_snapshot_xmin(pg_current_snapshot()) >= pg_snapshot_xmax(b.snapshot) as passed,
       (select string_agg(a.pid::text, ', ' order by a.xact_start)
        from pg_stat_activity a
        where a.backend_xid is not null and a.xact_start < b.started_at) as sessions,
       (select string_agg(quote_literal(p.gid), ', ' order by p.prepared)
        from pg_prepared_xacts p where p.prepared < b.started_at) as prepared
from milepost.bulk b where b.job_id = $1
