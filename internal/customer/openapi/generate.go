// Package openapi holds the types and the routes of the Customer API, generated from api/openapi.yaml. Bodies are left
// to [web.Decode], which is stricter than a generated decoder.
package openapi

//go:generate env CGO_ENABLED=0 go tool -modfile=../../../.ci/tools.mod oapi-codegen -config oapi.yaml -o openapi.gen.go ../../../api/openapi.yaml
