-- Deletes up to $2 entries of the audit log that are older than $1 ms, oldest first.
select milepost.prune_audit($1, $2) as rows
