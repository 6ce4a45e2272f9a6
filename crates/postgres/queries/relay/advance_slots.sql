-- Moves positions, parks and gives up, while the epoch ($13) lasts in which the positions were read: those of an earlier one name no
-- transactions any more, and move nothing.
select floor, moved, moved_ns
from milepost.advance_slots(
    $1, case when exists (select from milepost.running_epoch e where e.id = $13) then $2 else array[]::smallint[] end,
    $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11::jsonb, $12::jsonb)
