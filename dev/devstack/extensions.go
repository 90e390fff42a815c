package devstack

import "example.com/twinbox/dev/local"

// extensions are in every devstack. Remove an extension's line when you delete its folder.
func extensions() []local.Extension {
	return []local.Extension{
		operated(),
	}
}
