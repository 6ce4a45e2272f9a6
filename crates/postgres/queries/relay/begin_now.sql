-- Has a new subscription begin with what is committed from now on.
select milepost.begin_now($1)
