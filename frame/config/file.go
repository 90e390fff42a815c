package config

import (
	"io"
	"os"
	"strings"
)

// largestFile is more than any secret needs and little enough to read without a thought.
const largestFile = 64 << 10

// loadFile reads the secret from a file. One line end at its end is taken off, because editors and `echo` put it
// there; everything else counts as part of the secret and is checked like it.
func (f *field) loadFile(path string) *Problem {
	if path == "" {
		return f.fileProblem(CodeEmpty, "set, but to nothing")
	}
	// Before opening: a named pipe would make the open wait for a writer for ever.
	info, err := os.Stat(path)
	if err != nil {
		return f.fileProblem(CodeFileUnreadable, "the file does not exist or cannot be looked at")
	}
	if !info.Mode().IsRegular() {
		return f.fileProblem(CodeFileNotRegular, "not a regular file")
	}
	content, err := readLimited(path)
	switch {
	case err != nil:
		return f.fileProblem(CodeFileUnreadable, "the file cannot be read")
	case len(content) > largestFile:
		return f.fileProblem(CodeFileTooLarge, "larger than 64 KiB")
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if p := f.parseOne(text); p != nil {
		p.Variable = f.fileVariable()
		p.Detail = "in the file: " + p.Detail
		return p
	}
	return nil
}

func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, largestFile+1))
}

func (f *field) fileProblem(code Code, detail string) *Problem {
	return &Problem{Variable: f.fileVariable(), Code: code, Detail: detail}
}
