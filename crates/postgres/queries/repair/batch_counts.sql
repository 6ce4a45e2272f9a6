-- Repairs batches whose counts, state or end are wrong, child batches first. $1 limit
select m.mended
from (select o.batch_id from milepost.batch_counts_off() o order by o.batch_id desc limit $1) b
cross join lateral milepost.mend_batch(b.batch_id) m(mended)
