// Package openapi holds the generated types and routes of api/openapi.yaml. [web.Decode] reads bodies: it is stricter
// than a generated decoder.
package openapi

//go:generate env CGO_ENABLED=0 go tool -modfile=../../../.ci/tools.mod oapi-codegen -config oapi.yaml -o openapi.gen.go ../../../api/openapi.yaml
