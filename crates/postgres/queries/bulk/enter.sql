-- Makes the server end a session when its client is gone: a chunk whose worker died, and a dry run that was canceled, is rolled back
-- within seconds, if the server's operating system can detect that.
do $$
begin
    perform set_config('client_connection_check_interval', '1s', false);
exception when others then
    null;
end
$$
