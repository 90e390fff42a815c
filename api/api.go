// Package api holds the contracts of the system as files. The code is checked against them, not the other way round.
package api

import "embed"

// Files are the documents and events/, under those names.
//
//go:embed *.yaml events
var Files embed.FS
