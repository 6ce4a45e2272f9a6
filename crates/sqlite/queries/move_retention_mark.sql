-- Notes how far a sort of retention has read history. ?1 sort, ?2 pos
UPDATE retention SET pos = ?2 WHERE sort = ?1
