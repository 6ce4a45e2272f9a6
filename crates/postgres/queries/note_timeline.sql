-- The timeline of the server, if it was not recorded before.
select milepost.note_timeline()
