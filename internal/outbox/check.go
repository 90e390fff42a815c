package outbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A CheckError lists everything that keeps an outbox or a relay from working, not only the first. A service that is
// starting should treat it as a configuration error: trying again changes nothing.
type CheckError struct {
	Problems []Problem
}

// Problem is one of them. The codes are stable.
type Problem struct {
	Code   string
	Detail string
}

func (e *CheckError) Error() string {
	var text strings.Builder
	text.WriteString("outbox refuses to work")
	for i, p := range e.Problems {
		text.WriteString([]string{": ", "; "}[min(i, 1)])
		text.WriteString(p.Code + ": " + p.Detail)
	}
	return text.String()
}

// Has reports whether a problem of that code is among them.
func (e *CheckError) Has(code string) bool {
	for _, p := range e.Problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

// checklist collects problems.
type checklist struct{ problems []Problem }

func (c *checklist) refuse(wrong bool, code, detail string) {
	if wrong {
		c.problems = append(c.problems, Problem{code, detail})
	}
}

func (c *checklist) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &CheckError{c.problems}
}

const checkWritersSQL = `
select sysid is distinct from (select system_identifier from pg_control_system()),
    (select coalesce(max(position), 0) from public.outbox)
        > coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0),
    coalesce(restored, ''), coalesce(compared <> 'new' and compared <> ` + incarnation + `, false)
from public.outbox_cursor where name = $1`

// CheckWriters says whether events may be added: not in a database that was restored from another cluster before a
// relay has made the cursor this cluster's own, not if the restore lost the value of the sequence, and not before a
// restore that the relay has found is confirmed. New events would get numbers among the old ones, and be lost. A
// service that adds events asks after its relay has started, before it takes requests, and asks again while the answer
// is a [*CheckError] with the code [CodeRestored], or [CodeNotCompared] while the broker can be asked.
func CheckWriters(ctx context.Context, db DB) error {
	rows, err := db.Query(ctx, checkWritersSQL, cursorName)
	if err != nil {
		return fmt.Errorf("check outbox for writers: %w", err)
	}
	var c checklist
	var restored, behind, changed, found bool
	var lost string
	_, err = pgx.ForEachRow(rows, []any{&restored, &behind, &lost, &changed}, func() error {
		found = true
		c.refuse(restored, CodeRestored, "the database comes from another cluster; its relay has to lead first")
		c.refuse(lost != "", CodeRestored, lost)
		c.refuse(lost == "" && changed, CodeNotCompared, "its relay has to lead and to ask the broker first")
		c.refuse(behind, "sequence_behind", "the sequence is behind the positions in the table")
		return nil
	})
	if err != nil {
		return fmt.Errorf("check outbox for writers: %w", err)
	}
	c.refuse(!found, "schema", "public.outbox_cursor has no row "+cursorName)
	return c.err()
}
