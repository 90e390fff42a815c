// Command apijson writes a YAML document as JSON, so that the binary which checks requests against the document, or
// shows it to people, needs no parser of YAML: go run ./dev/tools/apijson FROM TO
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"
)

//go:generate env CGO_ENABLED=0 go run . ../../../api/openapi.yaml ../../../api/openapi.gen.json

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apijson FROM TO")
		os.Exit(2)
	}
	if err := convertFile(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "apijson:", err)
		os.Exit(1)
	}
}

func convertFile(from, to string) error {
	document, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	converted, err := convert(document)
	if err != nil {
		return err
	}
	return os.WriteFile(to, converted, 0o644)
}

// convert gives the document with its members where they stand, since pages show them in that order.
func convert(document []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	var compact, out bytes.Buffer
	if err := write(&compact, &root); err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	if err := json.Indent(&out, compact.Bytes(), "", " "); err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// write writes a node as JSON.
func write(out *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.DocumentNode:
		return write(out, node.Content[0])
	case yaml.AliasNode:
		return write(out, node.Alias)
	case yaml.MappingNode:
		return list(out, "{}", len(node.Content)/2, func(i int) error {
			name := node.Content[2*i]
			if name.Tag != "!!str" {
				return fmt.Errorf("line %d: the name of a member is no text", name.Line)
			}
			err := scalar(out, name.Value)
			out.WriteByte(':')
			return errors.Join(err, write(out, node.Content[2*i+1]))
		})
	case yaml.SequenceNode:
		return list(out, "[]", len(node.Content), func(i int) error { return write(out, node.Content[i]) })
	default:
		var value any
		if err := node.Decode(&value); err != nil {
			return err
		}
		return scalar(out, value)
	}
}

// list writes what stands between brackets, with commas.
func list(out *bytes.Buffer, brackets string, n int, element func(i int) error) error {
	out.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := element(i); err != nil {
			return err
		}
	}
	out.WriteByte(brackets[1])
	return nil
}

func scalar(out *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
