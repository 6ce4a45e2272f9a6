-- Notes what somebody did. ?1 now, ?2 who, ?3 what, ?4 detail (JSON)
INSERT INTO milepost_audit (at_ms, who, what, detail) VALUES (?1, ?2, ?3, ?4)
