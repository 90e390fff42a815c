// Package api holds the contracts of the system as files. The code is checked against them, not the other way round.
package api

import "embed"

// OpenAPI is openapi.yaml as JSON; make generate converts it.
//
//go:embed openapi.gen.json
var OpenAPI []byte

// Files are the documents, the requests and events/, under those names.
//
//go:embed *.yaml *.gen.json *.http events/*.json events/examples/*.json
var Files embed.FS
