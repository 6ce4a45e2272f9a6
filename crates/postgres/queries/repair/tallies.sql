-- Repairs batches with tasks whose counters are wrong or that wait although they need not, child batches first. $1 limit
select m.mended
from (select distinct o.batch_id from milepost.tallies_off() o order by o.batch_id desc limit $1) b
cross join lateral milepost.mend_batch(b.batch_id) m(mended)
