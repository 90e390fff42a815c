// Command engineapi lists what the packages of the engine export, one declaration after the other, so that a change of
// the engine's face is a line in a review: go run ./dev/tools/engineapi ENGINE FILE
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:generate env CGO_ENABLED=0 go run . ../../../engine ../../../engine/api.txt

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: engineapi ENGINE FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "engineapi:", err)
		os.Exit(1)
	}
}

func write(engine, file string) error {
	text, err := list(engine)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// list is the face of every package below the folder, in the order of their paths.
func list(engine string) (string, error) {
	folders, err := packages(engine)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("The face of the engine: what its packages export. " +
		"Written by make generate, checked by make verify.\n")
	for _, folder := range folders {
		lines, err := face(folder)
		if err != nil {
			return "", err
		}
		name, err := filepath.Rel(engine, folder)
		if err != nil {
			return "", err
		}
		text.WriteString("\n# " + filepath.ToSlash(name) + "\n\n" + strings.Join(lines, "\n") + "\n")
	}
	return text.String(), nil
}

// packages are the folders with Go code that others may import.
func packages(engine string) ([]string, error) {
	var folders []string
	err := filepath.WalkDir(engine, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"testdata", "internal"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		if folder := filepath.Dir(path); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	slices.Sort(folders)
	return folders, err
}
