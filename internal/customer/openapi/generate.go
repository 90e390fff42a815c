// Package openapi is generated from api/openapi.yaml. Bodies are read by [web.Decode], which is stricter.
package openapi

//go:generate env CGO_ENABLED=0 go run ../../../dev/tools/apijson ../../../api/openapi.yaml ../../../api/openapi.gen.json
//go:generate env CGO_ENABLED=0 go tool -modfile=../../../.ci/tools.mod oapi-codegen -config oapi.yaml -o openapi.gen.go ../../../api/openapi.yaml
