package api

import _ "embed" // for the document

// Admin is admin.yaml as JSON; make generate converts it.
//
//go:embed admin.gen.json
var Admin []byte
