-- Timelines that were noticed within the last week, except the first one of each log, and the current one if no process noticed it yet.
with noticed (id, seen_at) as (
    select t.id, t.seen_at
    from milepost.timeline t
    where t.seen_at > now() - interval '7 days'
      -- A restore of the data notes the same timeline again.
      and exists (select from milepost.timeline k
                  where k.server = t.server and k.id <> t.id and k.seen_at < t.seen_at
                    and (k.xmin::text::bigint = k.noted_in) = (t.xmin::text::bigint = t.noted_in))
    union all
    select c.id, now()
    -- A standby writes no log, whose position it could tell.
    from (select milepost.log_identity(), case when not pg_is_in_recovery() then milepost.current_timeline() end) c (server, id)
    where c.id is not null and exists (select from milepost.timeline k where k.server = c.server and k.xmin::text::bigint = k.noted_in)
      and not exists (select from milepost.timeline k where k.server = c.server and k.id = c.id)
)
select count(*) over () as count, 'timeline ' || n.id as what,
       'noticed at ' || n.seen_at || case when current_setting('synchronous_standby_names') = '' then '; replication is asynchronous'
                                          else '; replication is synchronous' end as detail
from noticed n
order by n.seen_at desc
limit 10
