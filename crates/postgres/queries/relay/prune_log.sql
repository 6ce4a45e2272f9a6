-- Deletes a portion of the log.
select milepost.prune_log($1)
