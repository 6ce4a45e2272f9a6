-- Deletes periods of ?1 seconds that began before ?2.
DELETE FROM milepost_rollup WHERE step_s = ?1 AND starts_at_s < ?2
