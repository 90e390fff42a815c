// Package testkit holds the helpers that tests of any package use: it waits for a condition, reserves a port, shows
// good and bad TLS certificates, plays a mail server that misbehaves, traces statements, reads gauges and .http files,
// compares answers with an OpenAPI document, and returns the text with which an assertion fails.
//
// It imports no package of the product, so the tests of every package can use it.
package testkit
