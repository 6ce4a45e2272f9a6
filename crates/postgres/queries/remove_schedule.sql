-- Removes schedule $1; $2: who says so, and no configuration where an operator made it. Its jobs stay.
delete from milepost.schedule where name = $1 and (source = $2::text::milepost.schedule_source or $2 = 'operator')
