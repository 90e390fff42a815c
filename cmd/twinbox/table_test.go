package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func example() *table {
	t := &table{columns: []string{"ID", "KEY", "ERROR"}}
	t.add("customer/1", "ada", "check event: schema_violation: /name type")
	t.add("customer/12", "b\x1b[31m\n\xff", "gone")
	return t
}

func TestTables(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: "" +
			"ID           KEY       ERROR\n" +
			"customer/1   ada       check event: schema_violation: /name type\n" +
			"customer/12  b?[31m??  gone\n",
		60: "" +
			"ID           KEY       ERROR\n" +
			"customer/1   ada       check event: schema_violation: /nam..\n" +
			"customer/12  b?[31m??  gone\n",
		20: "" +
			"id: customer/1\nkey: ada\nerror: check event: schema_violation: /name type\n" +
			"\nid: customer/12\nkey: b?[31m??\nerror: gone\n",
	} {
		var out strings.Builder
		require.NoError(t, example().write(&out, width))
		require.Equal(t, want, out.String(), "width %d", width)
	}
	var none strings.Builder
	require.NoError(t, (&table{columns: []string{"ID"}}).write(&none, 80))
	require.Empty(t, none.String())
	require.Error(t, example().write(failing{errors.New("full")}, 0))
}
