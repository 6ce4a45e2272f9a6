-- Lets retention continue that waits until a time of the clock before it was set back by $1 ms.
update milepost.turn set until = greatest(now(), until - $1 * interval '1 millisecond') where name in ('retention', 'deletion') and until > now()
