-- The position of part $2 of move $1, if the move is in progress; locked against others that continue it.
select p.position
from milepost.arrival a
join milepost.arrival_part p on p.move_id = a.move_id
where a.move_id = $1 and a.completed_at is null and p.part = $2
for no key update of p
for key share of a
