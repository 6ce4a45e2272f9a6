-- Returns a row if publisher $1 has its lease, and keeps others from taking over its slots until the end of the transaction.
select 1 from milepost.publisher where id = $1 and lease_until > clock_timestamp() for key share
