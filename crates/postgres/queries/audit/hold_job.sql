-- Keeps everybody from changing job $1 until this transaction ends.
select milepost.hold_job($1)
