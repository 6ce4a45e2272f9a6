-- Sets the start position of a new subscription: it begins with what is committed from now on.
select milepost.begin_now($1)
