-- Locks one worker whose lease ran out and that has not ended, or has and still holds jobs: more than one rescue
-- took at once, or a claim that came in while it left. Locked against its own claims and other rescuers.
select w.id from milepost.worker w
where w.lease_expires_at < now()
  and (w.ended_at is null
       or (w.ended_at > now() - interval '1 day'
           and exists (select from milepost.live l where l.worker_id = w.id)))
order by w.lease_expires_at
limit 1
for update skip locked
