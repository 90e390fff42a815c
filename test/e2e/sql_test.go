package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// statementOf returns the statement of docs/building.md below the comment, with values for psql's variables.
func statementOf(t *testing.T, comment string, values ...string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/building.md")
	require.NoError(t, err)
	_, statement, found := strings.Cut(string(page), "```sql\n-- "+comment+".")
	require.True(t, found, comment)
	statement, _, _ = strings.Cut(statement, "```")
	return "-- " + strings.NewReplacer(values...).Replace(statement)
}

// The middle one of three events breaks the contract. Once it is discarded, a replay of the last one is in order.
func TestDeadLettersAreChangedInSQL(t *testing.T) {
	parallel(t)
	h := newStack(t)
	first := healthy()
	broken, last := renamed(first.id(), 2), renamed(first.id(), 3)
	broken.value = []byte(`{}`)
	for _, record := range []*rawEvent{first, broken, last} {
		h.lay(t, record)
	}
	h.start(t, notificationService)
	testkit.Until(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from dead_letter where state = 'waiting'`) == 2
	}, "the broken event and the one behind it")
	shown, err := h.notificationDB.Exec(t.Context(), statementOf(t, "Show the dead letters"))
	require.NoError(t, err)
	require.EqualValues(t, 2, shown.RowsAffected())
	for version, comment := range map[int]string{2: "Discard a dead letter", 3: "Replay a dead letter"} {
		id := h.text(t, fmt.Sprintf(`select id::text from dead_letter where version = %d`, version))
		_, err := h.notificationDB.Exec(t.Context(), statementOf(t, comment,
			":id", id, ":'by'", "'ada'", ":'reason'", "'agreed with the partner'"))
		require.NoError(t, err)
	}
	testkit.Until(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from contact where version = 3`) == 1
	}, "the last event takes effect")
	require.Zero(t, count(t, h.notificationDB, `select count(*) from dead_letter where state = 'waiting'`))
	require.Equal(t, 2, count(t, h.notificationDB,
		`select count(*) from operator_action where operator = 'ada' and reason <> '' and verb in ('discard', 'replay')`))
}

// text reads one from Notification's database.
func (h *stack) text(t *testing.T, sql string) (text string) {
	t.Helper()
	require.NoError(t, h.notificationDB.QueryRow(t.Context(), sql).Scan(&text))
	return text
}
