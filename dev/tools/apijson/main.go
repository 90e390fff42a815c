// Command apijson writes a YAML document as JSON, so a binary needs no YAML parser: go run ./dev/tools/apijson FROM TO
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apijson FROM TO")
		os.Exit(2)
	}
	document, err := os.ReadFile(os.Args[1])
	if err == nil {
		document, err = convert(document)
	}
	if err == nil {
		err = os.WriteFile(os.Args[2], document, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apijson:", err)
		os.Exit(1)
	}
}

func convert(document []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(document, &value); err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	converted, err := json.MarshalIndent(value, "", " ")
	return append(converted, '\n'), err
}
