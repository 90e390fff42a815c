package adminapi

// DocumentPath serves api/admin.yaml as JSON, without a token.
const DocumentPath = "/admin/v1/openapi.json"

// StationsPath is the only operation that needs no token: it shows the same as /metrics and /readyz.
const StationsPath = "/admin/v1/stations"
