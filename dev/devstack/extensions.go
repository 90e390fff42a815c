package devstack

import "example.com/twinbox/dev/local"

// Remove an extension's line when you delete its folder.
func extensions() (list []local.Extension) {
	list = append(list, operated())
	return list
}
