-- A search by metadata reads the index's list of pending entries from end to end, up to 4 MB of it until autovacuum
-- comes by: after 5,000 new threads that was 1 ms of the 1.1 ms that a search took. Entered at once, an insert costs
-- the same within what could be measured.
alter index threads_by_metadata set (fastupdate = off);
