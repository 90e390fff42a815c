package outbox

import "strings"

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

// RefuseIf adds a problem if something is wrong.
func (e *CheckError) RefuseIf(wrong bool, code, detail string) {
	if wrong {
		e.Problems = append(e.Problems, Problem{code, detail})
	}
}

// Err is nil if there are no problems.
func (e *CheckError) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
