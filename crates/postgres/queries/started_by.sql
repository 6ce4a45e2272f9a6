-- Returns the event that started job or batch $1.
select w.event_id as started_by, w.subscription from milepost.event_work w
where w.work_id = $1 and w.work <> 'signal' order by w.started_at, w.event_id limit 1
