-- The last failure that bulk job ?1 is to try again, and how many there are.
SELECT max(pos), count(*) FROM milepost_bulk_failure WHERE retried_by = ?1
