// Package yamltest reads YAML, for tests that compare code with the documents in api/. No product code parses YAML.
package yamltest

import "gopkg.in/yaml.v3"

// A Node is a part that is decoded later.
type Node = yaml.Node

// Unmarshal reads a document into a value; fields are named by yaml tags.
func Unmarshal(document []byte, into any) error { return yaml.Unmarshal(document, into) }
