package adminapi

// DocumentPath is where a service's admin listener has api/admin.yaml, as JSON, without the token.
const DocumentPath = "/admin/v1/openapi.json"

// StationsPath is the one operation that needs no token: it tells what /metrics and /readyz tell.
const StationsPath = "/admin/v1/stations"
