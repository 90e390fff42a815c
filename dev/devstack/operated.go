package devstack

import (
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/operations"
)

// operated adds the console, the demonstration and the operators' file.
func operated() local.Extension { return operations.Extension() }
