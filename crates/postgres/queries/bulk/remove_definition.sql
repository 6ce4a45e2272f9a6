-- Removes definition $1 of a configuration.
delete from milepost.bulk_definition where name = $1 and source = 'config'
