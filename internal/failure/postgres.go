package failure

// connBusy is pgx's word for a connection that somebody else is using. pgx calls it safe to retry, but its one cause is
// a handler that shares its transaction between goroutines, and that comes again each time.
const connBusy = "conn busy"

// postgresRows are PostgreSQL's error codes (appendix A) by their class of two letters, and the single codes that
// differ from their class. What is missing is Unknown on purpose: 42 for one (syntax, missing table), because during a
// rolling deployment the schema may be about to arrive.
var postgresRows = []rows{
	{Transient, "a connection could not be made or was lost", "postgres_connect postgres_conn_closed sql_08"},
	{Transient, "pgx knows that nothing reached the server", "postgres_not_sent"},
	{Cancelled, "the pool closes when the process stops", "postgres_pool_closed"},
	{Unknown, "the handler ended the transaction itself, or swallowed the error that did", "postgres_tx_closed " +
		"postgres_commit_rolled_back sql_25P02"},
	{Unknown, "client and server do not understand each other, or something between them does not", "sql_08P01"},
	{Transient, "the server rolled back for others' sake: serialization, deadlock, lost commit", "sql_40"},
	{Permanent, "a deferred constraint refuses the same row again", "sql_40002"},
	{Transient, "somebody else holds the lock or the object", "sql_55P03 sql_55006"},
	{Transient, "connections, memory, disk", "sql_53"},
	{Transient, "an operator stops, restarts or recovers the server", "sql_57"},
	{Unknown, "the statement timeout: one that is always too slow must end", "sql_57014"},
	{Transient, "the server's own files or settings", "sql_58 sql_F0"},
	{Transient, "a standby: the primary has just moved", "sql_25006"},
	{Unknown, "the handler leaves its transaction alone or open for too long", "sql_25P03 sql_25P04"},
	{Transient, "a pooler or a reset lost the prepared statement", "sql_26"},
	{Transient, "the snapshot is gone; the next transaction has its own", "sql_72"},
	{Transient, "account, password or database are put right by an operator; no event is at fault", "sql_28 sql_3D"},
	{Permanent, "the value does not fit its type, today or tomorrow", "sql_22"},
	{Permanent, "a constraint refuses the row, again each time", "sql_23 sql_44"},
	{Permanent, "too large for the server, whenever it comes", "sql_54"},
}
