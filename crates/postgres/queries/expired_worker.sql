-- Locks one worker whose lease ran out, or that died and still holds jobs, against its own claims and against
-- other rescuers.
select w.id from milepost.worker w
where w.lease_expires_at < now()
  and (w.ended_at is null
       or (w.died and w.ended_at > now() - interval '1 day'
           and exists (select from milepost.live l where l.worker_id = w.id)))
order by w.lease_expires_at
limit 1
for update skip locked
