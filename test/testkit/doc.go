// Package testkit holds helpers for tests of any package, and imports no package of the product.
package testkit
