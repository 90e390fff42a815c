package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"example.com/twinbox/dev/tools/parts"
)

// originFile is where a clone keeps what it was made of, for its next upgrade.
const originFile = ".origin.json"

// origin is what a clone was made of, and how.
type origin struct {
	Commit  string   `json:"commit"`  // of the tree that it was made from; empty: not in git
	Module  string   `json:"module"`  // that gave the clone its names
	Name    string   `json:"name"`    // of the project
	Without []string `json:"without"` // the parts that were left out
}

// originOf reads the origin of a clone; ok is false in a tree that is none.
func originOf(tree parts.Tree) (o origin, ok bool, err error) {
	file, exists := tree[originFile]
	if !exists {
		return origin{}, false, nil
	}
	if err := json.Unmarshal(file.Content, &o); err != nil {
		return origin{}, false, fmt.Errorf("read %s: %w", originFile, err)
	}
	return o, true, nil
}

func (o origin) write(tree parts.Tree) error {
	slices.Sort(o.Without)
	o.Without = slices.Compact(append([]string{}, o.Without...))
	content, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", originFile, err)
	}
	tree[originFile] = parts.File{Content: append(content, '\n'), Mode: 0o644}
	return nil
}
