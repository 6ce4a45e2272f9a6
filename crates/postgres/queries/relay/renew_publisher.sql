-- Renews the lease of a publisher for $2 ms. Changes nothing if its lease had expired and it was deleted, or if the log is another one: its row
-- came with a dump that was restored, and nothing is published until reseed, which waits for the end of its lease.
update milepost.publisher p set lease_until = clock_timestamp() + $2 * interval '1 ms'
where p.id = $1
  and exists (select from milepost.subscription s where s.name = p.subscription and s.log_identity = milepost.log_identity())
