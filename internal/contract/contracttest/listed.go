package contracttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var defined = regexp.MustCompile(`(?m)^(?:\t|var )(\w+) += define\[`)

// CheckListed names each definition of the folder, package contract, that is missing in All. Services do not know such
// an event.
func CheckListed(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text.Write(source)
	}
	_, all, _ := strings.Cut(text.String(), "\nfunc All() ")
	all, _, _ = strings.Cut(all, "\n}\n")
	var problems []error
	for _, found := range defined.FindAllStringSubmatch(text.String(), -1) {
		if !regexp.MustCompile(`\b` + found[1] + `\.Declaration\b`).MatchString(all) {
			problems = append(problems, fmt.Errorf("%s is defined and not in All (definitions.go)", found[1]))
		}
	}
	return errors.Join(problems...)
}
