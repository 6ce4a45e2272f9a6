-- A transaction that cannot be repeated, because its earlier statements would be lost, and that keeps its connection anyway.
set local lock_timeout = '10s'
