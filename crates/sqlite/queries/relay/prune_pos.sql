-- Where the last look for events that can be forgotten ended.
SELECT pos FROM milepost_log_prune
