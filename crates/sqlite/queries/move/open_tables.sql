-- Returns the statements that remove the triggers of close_tables.
SELECT printf('DROP TRIGGER "%w"', name) FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'milepost_*_departed_*'
