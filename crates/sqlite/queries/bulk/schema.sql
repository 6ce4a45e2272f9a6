-- Reads the schema, so that the connection learns of tables and indexes that others have made.
SELECT count(*) FROM sqlite_schema
