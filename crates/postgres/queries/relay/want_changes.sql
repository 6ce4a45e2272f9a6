-- Has a subscription want changes of jobs of these kinds and batches of these DAGs, and no others.
select milepost.want_changes($1, $2, $3)
