-- The number of rows to delete by retention periods in ms (null: keep forever): $1 succeeded, $2 canceled and skipped, $3
-- failed, $4 history, $5 keys, $6 workers, $7 batches, $8 ids of events, $9 audit.
with cut as materialized (
    select now() - $1::bigint * interval '1 millisecond' as succeeded,
           now() - $2::bigint * interval '1 millisecond' as canceled,
           now() - $3::bigint * interval '1 millisecond' as failed,
           now() - $4::bigint * interval '1 millisecond' as history,
           now() - $5::bigint * interval '1 millisecond' as keys,
           now() - $6::bigint * interval '1 millisecond' as workers,
           now() - $7::bigint * interval '1 millisecond' as batches,
           now() - $8::bigint * interval '1 millisecond' as inbox,
           now() - $9::bigint * interval '1 millisecond' as audit
)
select (select count(*) from milepost.ended e where e.state = 'succeeded' and e.ended_at < cut.succeeded) as succeeded,
       (select count(*) from milepost.ended e where e.state <> 'succeeded' and e.ended_at < cut.canceled) as canceled,
       (select count(*) from milepost.live l where l.failed_at is not null and l.failed_at < cut.failed) as failed,
       (select count(*) from milepost.ended e
        where not e.shortened and e.ended_at < cut.history
          and (e.ended_at < case e.state when 'succeeded' then cut.succeeded else cut.canceled end) is not true
       ) as histories,
       (select count(*) from milepost.job_key k where k.job_ended_at is not null and k.job_ended_at < cut.keys) as keys,
       (select count(*) from milepost.worker w where w.ended_at is not null and w.ended_at < cut.workers) as workers,
       (select count(*) from milepost.batch b where b.ended_at is not null and b.parent_id is null and b.ended_at < cut.batches) as batches,
       (select count(*) from milepost.processed_event p where p.processed_at < cut.inbox) as inbox,
       (select count(*) from milepost.inbox_dead d where d.dead_at < cut.failed) as inbox_dead,
       (select count(*) from milepost.audit a where a.at < cut.audit) as audit
from cut
