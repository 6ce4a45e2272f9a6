-- About how many were written so far, of all runs: cheap enough to ask again and again.
select coalesce(max(id), 0) from milepost_demo_notification
