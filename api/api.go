// Package api holds the contracts of the system as files, and carries them in the binary. The code is checked against
// them, not the other way round.
package api

import "embed"

// OpenAPI is openapi.yaml as JSON, which make generate converts it into.
//
//go:embed openapi.gen.json
var OpenAPI []byte

// Files are the documents, the requests and events/, under those names. A document of the operations is among them as
// long as this folder has it.
//
//go:embed *.yaml *.gen.json *.http events/*.json events/examples/*.json
var Files embed.FS
