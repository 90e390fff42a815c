package failure

import (
	"slices"
	"strings"
)

// A Row of the table: errors of this code belong to this class, and why.
type Row struct {
	Code  string
	Class Class
	Why   string
}

// Rows is one reason and the codes it holds for, separated by spaces. A code may be a family (sql_40, smtp_4): a row
// for the single code goes before it.
type Rows struct {
	Class Class
	Why   string
	Codes string
}

// NewRows returns the rows of a reason.
func NewRows(class Class, why, codes string) Rows { return Rows{class, why, codes} }

// Library is what a package knows of the errors of one client library. All but Rows and Codes is optional.
type Library struct {
	Rows []Rows
	// Codes names one error, from the particular to the family, and looks at nothing below it. Nothing: it is another's.
	Codes func(err error) []string
	// Connecting recognises an error that only the connection can have caused, and returns its code and the error
	// inside; an empty code: it is none.
	Connecting func(err error) (code string, inside error)
	// Unsent gives the code of an error, wherever in its chain, that means that the server has seen nothing. It is asked
	// last, when no code is known. Empty: it is none.
	Unsent func(err error) (code string)
}

// own is what is known without any library. It is asked last: its errors are the most general.
var own = Library{Rows: slices.Concat(markRows, contextRows, networkRows, smtpRows), Codes: codesOf}

var (
	libraries []Library
	byCode    = index(map[string]Row{}, own.Rows)
)

// Register adds a library to the table. It is for the init of packages that know one, and panics for a code that the
// table has.
func Register(l Library) {
	libraries = append(libraries, l)
	byCode = index(byCode, l.Rows)
}

func index(byCode map[string]Row, all []Rows) map[string]Row {
	for _, rows := range all {
		for code := range strings.FieldsSeq(rows.Codes) {
			if _, twice := byCode[code]; twice {
				panic("failure: two rows for " + code)
			}
			byCode[code] = Row{code, rows.Class, rows.Why}
		}
	}
	return byCode
}

// look takes the codes of one error, from the particular to the family, and returns the first row there is, under the
// most particular code. An error without a row is not known.
func look(codes []string) (Verdict, bool) {
	for _, code := range codes {
		if row, found := byCode[code]; found {
			return Verdict{row.Class, codes[0]}, true
		}
	}
	return Verdict{}, false
}

// rowOf is the row of a code that the program itself gives.
func rowOf(code string) Verdict {
	row, found := byCode[code]
	if !found {
		panic("failure: no row for " + code)
	}
	return Verdict{row.Class, code}
}

var markRows = []Rows{
	{Permanent, "its author knows that it is final", "marked_permanent says_permanent"},
	{Transient, "its author knows that it passes", "marked_transient"},
	{Transient, "it may have been done and may not: to be done again, under the same id", "outcome_unknown"},
}

var contextRows = []Rows{
	{Cancelled, "the process stops, or the partition is another's", "context_canceled"},
	{Unknown, "one that always runs out of time must end in the dead letters", "context_deadline"},
}
