-- Returns the last failure that bulk job ?1 is to retry, and their number.
SELECT max(pos), count(*) FROM milepost_bulk_failure WHERE retried_by = ?1
