package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// statementOf returns the statement of docs/building.md below the comment.
func statementOf(t *testing.T, comment string, values ...string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/building.md")
	require.NoError(t, err)
	_, statement, found := strings.Cut(string(page), "```sql\n-- "+comment+".")
	require.True(t, found, comment)
	statement, _, _ = strings.Cut(statement, "```")
	return "-- " + strings.NewReplacer(values...).Replace(statement)
}

func TestADeadLetterIsDiscardedInSQL(t *testing.T) {
	inProcess(t)
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
	id := h.text(t, `select id::text from dead_letter where version = 2`)
	execute(t, h.notificationDB, statementOf(t, "Discard a dead letter",
		":id", id, ":'by'", "'ada'", ":'reason'", "'agreed with the partner'"))
	testkit.Until(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from contact where version = 3`) == 1
	}, "the last event takes effect")
	require.Zero(t, count(t, h.notificationDB, `select count(*) from dead_letter where state = 'waiting'`))
	require.Equal(t, 1, count(t, h.notificationDB,
		`select count(*) from operator_action where operator = 'ada' and reason <> '' and verb = 'discard'`))
}

func (h *stack) text(t *testing.T, sql string) (text string) {
	t.Helper()
	require.NoError(t, h.notificationDB.QueryRow(t.Context(), sql).Scan(&text))
	return text
}
