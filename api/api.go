// Package api holds the contracts of the system as files, and carries them in the binary: the HTTP API, the channels,
// and the schema of each event. The code is checked against these files, not the other way round.
package api

import "embed"

// Files are openapi.yaml, admin.yaml, asyncapi.yaml, requests.http, operations.http and events/, under those names;
// admin.gen.json is admin.yaml as make generate converts it.
//
//go:embed openapi.yaml admin.yaml admin.gen.json asyncapi.yaml requests.http operations.http
//go:embed events/*.json events/examples/*.json
var Files embed.FS
