-- Deletes periods that begin after ?1, of a clock that was ahead.
DELETE FROM milepost_rollup WHERE starts_at_s > ?1
