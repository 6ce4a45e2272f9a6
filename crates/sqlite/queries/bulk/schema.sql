-- Reads the schema, so that the connection sees tables and indexes that other connections have created.
SELECT count(*) FROM sqlite_schema
