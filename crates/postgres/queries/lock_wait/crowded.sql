-- While many statements wait for locks: the others need the connections.
set local lock_timeout = '20ms'
