package devstack

import (
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/operations"
)

// extensions are in every devstack. Remove an extension's line, and its import, when you delete its folder.
func extensions() []local.Extension {
	return []local.Extension{
		operations.Extension(),
	}
}
