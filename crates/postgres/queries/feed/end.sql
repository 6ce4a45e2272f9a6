-- The end of the feed: the current epoch and snapshot.
select milepost.current_epoch() as epoch, pg_current_snapshot()::text as seen
