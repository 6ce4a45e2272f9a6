-- Records that events start work; returns those that have not started any before. $1 events, in ascending order; $2 subscription; $3 what
-- each starts; $4 ids of the jobs and batches.
insert into milepost.event_work (event_id, subscription, work, work_id)
select r.event_id, $2, r.work, r.work_id from unnest($1::uuid[], $3::text[], $4::uuid[]) r(event_id, work, work_id)
on conflict do nothing
returning event_id
