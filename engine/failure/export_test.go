package failure

import (
	"maps"
	"slices"
	"strings"
)

// Table lists every row, in the order of the codes.
func Table() []Row {
	return slices.SortedFunc(maps.Values(byCode), func(a, b Row) int { return strings.Compare(a.Code, b.Code) })
}
