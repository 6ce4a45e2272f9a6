-- Removes schedule $1; $2 source: a configuration does not remove an operator's schedule. Its jobs are kept.
delete from milepost.schedule where name = $1 and (source = $2::text::milepost.schedule_source or $2 = 'operator')
