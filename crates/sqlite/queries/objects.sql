-- Lists the objects in the file with their types, without SQLite's internal ones.
SELECT type || ' ' || name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'
