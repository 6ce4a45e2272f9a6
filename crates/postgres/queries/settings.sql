-- The server's version, its settings for durability, and the encoding of the database.
select current_setting('server_version_num')::int as version_num, current_setting('server_version') as version,
       current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
       current_setting('full_page_writes') as full_page_writes,
       current_setting('server_encoding') as encoding
