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

// rows is one reason and the codes it holds for, separated by spaces.
type rows struct {
	class Class
	why   string
	codes string
}

// groups is the table. A code may be a family (sql_40, smtp_4): a row for the single code goes before it.
var groups = slices.Concat(markRows, contextRows, networkRows, postgresRows, brokerRows, smtpRows)

// Table lists every row, in an order for people.
func Table() []Row {
	var list []Row
	for _, group := range groups {
		for code := range strings.FieldsSeq(group.codes) {
			list = append(list, Row{code, group.class, group.why})
		}
	}
	return list
}

var byCode = func() map[string]Row {
	index := map[string]Row{}
	for _, row := range Table() {
		if _, twice := index[row.Code]; twice {
			panic("failure: two rows for " + row.Code)
		}
		index[row.Code] = row
	}
	return index
}()

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

var markRows = []rows{
	{Permanent, "its author knows that it is final", "marked_permanent says_permanent"},
	{Transient, "its author knows that it passes", "marked_transient"},
	{Transient, "it may have been done and may not: to be done again, under the same id", "outcome_unknown"},
}

var contextRows = []rows{
	{Cancelled, "the process stops, or the partition is another's", "context_canceled"},
	{Unknown, "one that always runs out of time must end in the dead letters", "context_deadline"},
}
