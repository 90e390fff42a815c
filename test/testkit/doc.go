// Package testkit holds helpers for tests of any package: waits, reserved ports, TLS certificates, a mail server that
// misbehaves, statement tracers, gauges, .http files, OpenAPI documents and texts of failures. It imports no package of
// the product.
package testkit
