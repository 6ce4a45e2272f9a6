-- Notes how far a sort of retention has read history. ?1 sort, ?2 pos
UPDATE milepost_retention SET pos = ?2 WHERE sort = ?1
