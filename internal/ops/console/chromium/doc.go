// Package console drives the operators' page in a real Chromium: go test -tags console, or make test-console.
package console
