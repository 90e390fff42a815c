package inboxtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/test/pgtest"
)

// Moved are the times that [Advance] moves, and Stays those that it does not: an event's time is a function of its id,
// which would not be found under another one, so the inbox forgets no day sooner.
var (
	Moved = []string{
		"inbox.processed_at", "inbox_owner.since", "inbox_attempt.last_at", "inbox_pause.since",
		"dead_letter.record_time", "dead_letter.edited_at", "dead_letter.first_failed_at", "dead_letter.failed_at",
		"dead_letter.settled_at",
	}
	Stays = []string{"inbox.event_time", "inbox_horizon.remembers_from"}
)

// Advance lets time pass for the inbox: dead letters and what is processed grow older.
func Advance(t testing.TB, pool *pgxpool.Pool, d time.Duration) {
	t.Helper()
	pgtest.MoveBack(t, pool, d, Moved...)
}
