// Package api holds the contracts of the system as files, and carries them in the binary: the HTTP API, the channels,
// and the schema of each event. The code is checked against these files, not the other way round.
package api

import "embed"

// OpenAPI is openapi.yaml as JSON, which make generate converts it into.
//
//go:embed openapi.gen.json
var OpenAPI []byte

// Files are openapi.yaml, asyncapi.yaml, requests.http and events/, under those names, and for the operations
// admin.yaml, admin.gen.json, which make generate converts it into, and operations.http.
//
//go:embed openapi.yaml admin.yaml admin.gen.json asyncapi.yaml requests.http operations.http
//go:embed events/*.json events/examples/*.json
var Files embed.FS
