-- About how many were written so far, of all runs: cheap enough to ask again and again.
SELECT coalesce(max(id), 0) FROM milepost_demo_notification
