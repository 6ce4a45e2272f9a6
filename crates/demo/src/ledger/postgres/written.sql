-- The approximate number of rows written so far, by all runs: cheap enough for polling.
select coalesce(max(id), 0) from milepost_demo_notification
