-- Removes definition $1, if it comes from a configuration.
delete from milepost.bulk_definition where name = $1 and source = 'config'
