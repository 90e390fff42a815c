package api

import _ "embed" // for the document

// OpenAPI is openapi.yaml as JSON; make generate converts it.
//
//go:embed openapi.gen.json
var OpenAPI []byte
