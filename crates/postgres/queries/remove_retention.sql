-- Removes the stored retention period of $1.
delete from milepost.retention_setting where name = $1
returning name
