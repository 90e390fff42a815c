package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFaceIsWhatIsExported(t *testing.T) {
	t.Parallel()
	engine := t.TempDir()
	for name, text := range map[string]string{
		"box/box.go": `// Package box holds things.
package box

import "errors"

// ErrFull says that there is no room.
var ErrFull = errors.New("full")

const (
	hidden = 1
	Shown  = 2
)

// Box is a box.
type Box[T any] struct {
	Name string // of the box
	content []T
}

// New makes one.
func New[T any](name string) *Box[T] { return &Box[T]{Name: name} }

// Put puts.
func (b *Box[T]) Put(t T) error { b.content = append(b.content, t); return b.check() }

func (b *Box[T]) check() error { return nil }
`,
		"box/box_test.go":       "package box\n\nfunc Tested() {}\n",
		"box/testdata/other.go": "package other\n\nfunc Other() {}\n",
		"box/tagged.go":         "//go:build faults\n\npackage box\n\nfunc Tagged() {}\n",
		"box/lid/lid.go":        "package lid\n\ntype Lid interface{ Close() }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(engine, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(engine, name), []byte(text), 0o600))
	}
	text, err := list(engine)
	require.NoError(t, err)
	require.Equal(t, `The face of the engine: what its packages export. Written by make generate, checked by make verify.

# box

const (
    Shown = 2
)
var ErrFull = errors.New("full")
type Box[T any] struct {
    Name string
    // contains filtered or unexported fields
}
func New[T any](name string) *Box[T]
func (b *Box[T]) Put(t T) error

# box/lid

type Lid interface{ Close() }
`, text)
}
