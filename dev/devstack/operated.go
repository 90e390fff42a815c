package devstack

import (
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/operations"
)

func operated() local.Extension { return operations.Extension() }
