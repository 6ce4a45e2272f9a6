-- Repairs batches with tasks whose state differs from that of their job or child batch, child batches first. $1 limit
select m.mended
from (select distinct o.batch_id from milepost.task_states_off() o order by o.batch_id desc limit $1) b
cross join lateral milepost.mend_batch(b.batch_id) m(mended)
