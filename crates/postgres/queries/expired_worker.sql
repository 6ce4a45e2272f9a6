-- Locks one worker whose lease ran out, or that is gone and left jobs behind, against its own claims and
-- against other rescuers.
select w.id from milepost.worker w
where (w.ended_at is null and w.lease_expires_at < now())
   or (w.ended_at > now() - interval '1 day' and exists (select from milepost.live l where l.worker_id = w.id))
order by w.lease_expires_at
limit 1
for update skip locked
