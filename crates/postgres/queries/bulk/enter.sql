-- Lets a session on another database end with its client: a chunk whose worker is gone is rolled back within seconds, where the
-- server's system can tell.
do $$
begin
    perform set_config('client_connection_check_interval', '1s', false);
exception when others then
    null;
end
$$
