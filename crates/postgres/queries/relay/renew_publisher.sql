-- Renews the lease of a publisher for $2 ms. Changes nothing if its lease had expired and it was deleted.
update milepost.publisher set lease_until = clock_timestamp() + $2 * interval '1 ms' where id = $1
