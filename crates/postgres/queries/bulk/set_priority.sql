-- Sets the priority of job $1 to $2 while it is live.
update milepost.live set priority = $2 where id = $1 returning 1
