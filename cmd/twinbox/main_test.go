package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":            {[]string{"--help"}, 0, "TWINBOX_*", ""},
		"help of dlq":     {[]string{"dlq", "list", "--help"}, 0, "TWINBOX_CUSTOMER_ADMIN", ""},
		"no command":      {nil, 2, "", "twinbox: expected"},
		"unknown command": {[]string{"walk"}, 2, "", "walk"},
		"unknown flag":    {[]string{"dlq", "list", "--port=1"}, 2, "", "--port"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := twinbox(t, test.args...)
			require.Equal(t, test.code, r.code)
			require.Contains(t, r.stdout, test.stdout)
			require.Contains(t, r.stderr, test.stderr)
			require.Equal(t, test.stderr == "", r.stderr == "")
		})
	}
}
