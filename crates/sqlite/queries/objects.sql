-- Everything that somebody made in the file, with what it is; not what SQLite keeps for itself.
SELECT type || ' ' || name FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'
