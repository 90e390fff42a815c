// Command apijson writes a YAML document as JSON, so that the binary which checks requests against the document needs
// no parser of YAML: go run ./dev/tools/apijson FROM TO
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"
)

//go:generate env CGO_ENABLED=0 go run . ../../../api/admin.yaml ../../../api/admin.gen.json

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apijson FROM TO")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "apijson:", err)
		os.Exit(1)
	}
}

func write(from, to string) error {
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

// convert gives the document with its members in the order of their names, the same bytes each time.
func convert(document []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(document, &value); err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("write document: %w", err)
	}
	return out.Bytes(), nil
}
