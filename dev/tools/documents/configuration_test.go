package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

type firstConfig struct {
	Shared string        `env:"SHARED" envDefault:"x" oneof:"x y" doc:"in both"`
	Key    config.Secret `env:"KEY,required" min:"8" max:"16" doc:"of the first"`
}

type secondConfig struct {
	Shared string `env:"SHARED" envDefault:"x" oneof:"x y" doc:"in both"`
	Count  int    `env:"COUNT" envDefault:"3" min:"1" max:"9" doc:"this | that"`
}

func TestRender(t *testing.T) {
	t.Parallel()
	both := config.Rule{Variable: "SHARED", Text: "must be y"}
	page := render(
		program{"first", config.Describe(firstConfig{}), []config.Rule{both, {Variable: "KEY", Text: "must fit"}}},
		program{"second", config.Describe(secondConfig{}), []config.Rule{both}},
	)
	for _, want := range []string{
		"## Every service\n\n| variable |", "| `SHARED` | `x` | x, y | in both |\n\nWhat",
		"\n\n- `SHARED` must be y.\n\n## `first`",
		"| `KEY` | **required** | secret, 8 to 16 bytes | of the first |", "- `KEY` must fit.",
		"## `second`", "| `COUNT` | `3` | 1 to 9 | this \\| that |",
	} {
		require.Contains(t, page, want)
	}
}

func TestThePageIsFresh(t *testing.T) {
	t.Parallel()
	onDisk, err := os.ReadFile("../../../docs/configuration.md")
	require.NoError(t, err)
	require.Equal(t, configuration(), string(onDisk), "run make generate")
}
