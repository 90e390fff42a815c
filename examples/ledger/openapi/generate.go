// Package openapi holds the types and the routes of the Ledger API, generated from openapi.yaml.
package openapi

//go:generate env CGO_ENABLED=0 go run example.com/twinbox/dev/tools/apijson ../openapi.yaml ../openapi.gen.json
//go:generate env CGO_ENABLED=0 go tool -modfile=../../../.ci/tools.mod oapi-codegen -config oapi.yaml -o openapi.gen.go ../openapi.yaml
