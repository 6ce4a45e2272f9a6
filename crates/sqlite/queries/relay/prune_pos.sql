-- Returns the position at which the last search for deletable events ended.
SELECT pos FROM milepost_log_prune
