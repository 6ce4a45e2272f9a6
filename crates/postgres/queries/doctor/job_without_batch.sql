-- Jobs that have not ended and whose batch does not exist. Leaves out jobs that were rerun alone after their batch was
-- deleted.
select count(*) over () as count, j.id::text as what, 'of batch ' || j.batch_id::text as detail
from milepost.live l
join milepost.job j on j.id = l.id
where j.batch_id is not null
  and not exists (select from milepost.batch b where b.id = j.batch_id)
  and not exists (select from milepost.history h where h.job_id = j.id and h.verb = 'rerun')
order by what
limit 10
