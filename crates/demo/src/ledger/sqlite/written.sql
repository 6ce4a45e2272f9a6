-- The approximate number of rows written so far, by all runs: cheap enough for polling.
SELECT coalesce(max(id), 0) FROM milepost_demo_notification
