-- Timelines that were noticed within the last week, except the one of the migration.
select count(*) over () as count, 'timeline ' || t.id as what,
       'noticed at ' || t.seen_at || case when current_setting('synchronous_standby_names') = '' then '; replication is asynchronous'
                                          else '; replication is synchronous' end as detail
from milepost.timeline t
where t.seen_at > now() - interval '7 days' and exists (select from milepost.timeline k where k.seen_at < t.seen_at)
order by t.seen_at desc
limit 10
