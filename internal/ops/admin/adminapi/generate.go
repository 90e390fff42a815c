// Package adminapi holds the types of the operations, generated from api/admin.yaml.
//
// [web.Decode] reads the bodies of requests: it is stricter than any generated decoder.
package adminapi

//go:generate env CGO_ENABLED=0 go run ../../../../dev/tools/apijson ../../../../api/admin.yaml ../../../../api/admin.gen.json
//go:generate env CGO_ENABLED=0 go tool -modfile=../../../../.ci/tools.mod oapi-codegen -config oapi.yaml -o adminapi.gen.go ../../../../api/admin.yaml
