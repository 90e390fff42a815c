package failure

import (
	"maps"
	"slices"
)

// Codes lists the code of every row, in their order.
func Codes() []string { return slices.Sorted(maps.Keys(byCode)) }
