-- Prevents all changes of job $1 until this transaction ends.
select milepost.hold_job($1)
