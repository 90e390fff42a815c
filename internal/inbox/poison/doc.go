// Package poison finds the record that ends the process which handles it, and keeps it from ending the next one.
//
// The promise: a record at which the process ends each time is given up after 2 + log2(batch) deaths, or 1 +
// MaxAttempts if that is more, at any place in its batch and with any number of topic-partitions in the process; and
// no other record is given up in its place. [Assignment] says from which record on the last owner of a partition may
// have ended, [Attempt] counts an attempt before it begins, halves a range at which a process ended, and lets nothing
// else run beside it.
//
// A process that is killed for another reason halves the range in flight, and no other range loses its count. In a
// topic-partition whose last owner stopped cleanly nothing is counted, and an attempt costs no statement.
//
// Not promised: anything about records that fail with an error; their attempts are the inbox's to count. The rows are
// public.inbox_owner (the owner of a topic-partition) and public.inbox_attempt (the suspected ranges).
package poison
