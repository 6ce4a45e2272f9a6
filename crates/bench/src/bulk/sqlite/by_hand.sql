-- Creates a note of run ?1 for each member after ?2, up to ?3.
INSERT INTO milepost_bench_note (run, member, place)
SELECT ?1, id, place FROM milepost_bench_member WHERE id > ?2 AND id <= ?3
