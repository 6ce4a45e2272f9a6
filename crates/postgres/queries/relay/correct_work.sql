-- Records jobs or batches that existed already under the keys of new ones: $1 subscription, $2 events, $3 their jobs or batches.
update milepost.event_work w set work_id = r.work_id
from unnest($2::uuid[], $3::uuid[]) r(event_id, work_id)
where w.event_id = r.event_id and w.subscription = $1
