-- Removes schedule $1. Its jobs stay.
delete from milepost.schedule where name = $1
