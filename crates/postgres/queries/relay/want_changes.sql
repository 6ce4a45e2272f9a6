-- Sets the kinds of jobs and the DAGs whose changes a subscription selects.
select milepost.want_changes($1, $2, $3)
