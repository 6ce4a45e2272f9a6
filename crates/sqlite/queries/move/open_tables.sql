-- The statements that open closed tables again.
SELECT printf('DROP TRIGGER "%w"', name) FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'milepost_*_departed_*'
