-- Mends batches with tasks that stand elsewhere than their job or their inner batch, inner batches first. $1 at most
select m.mended
from (select distinct o.batch_id from milepost.task_states_off() o order by o.batch_id desc limit $1) b
cross join lateral milepost.mend_batch(b.batch_id) m(mended)
