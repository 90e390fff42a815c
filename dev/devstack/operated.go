package devstack

import (
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/operations"
)

// operated adds the console, the demonstration and what the services' operators need.
func operated() local.Extension { return operations.Extension() }
