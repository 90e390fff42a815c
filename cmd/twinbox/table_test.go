package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTables(t *testing.T) {
	t.Parallel()
	shown := func(rows []item, answer Answer) string {
		var out strings.Builder
		(&streams{Answer: &answer, out: &out}).show(table{view{columns: "ID id, KEY+ key, ERROR error"}, rows})
		return out.String()
	}
	rows := []item{
		{"id": "customer/1", "key": "ada", "error": "check event: schema_violation: /name type"},
		{"id": "customer/12", "key": "b\x1b[31m\n\xff"},
	}
	require.Equal(t, ""+
		"ID           KEY       ERROR\n"+
		"customer/1   ada       check event: schema_violation: /name type\n"+
		"customer/12  b?[31m??  -\n", shown(rows, Answer{Output: "wide"}))
	require.Equal(t, ""+
		"customer/1   check event: schema_violation: /name type\n"+
		"customer/12  -\n", shown(rows, Answer{NoHeaders: true}))
	require.Empty(t, shown(nil, Answer{}))
}

func TestATailFitsAScreen(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	addr := listener(t, says(`{"items":[{"position":1234567,"event_id":"`+anID+`","key":"`+aKey+`","version":12,
		"type":"com.example.notification.verification-email-sent.v1","occurred_at":"2026-11-21T16:58:46Z",
		"state":"published"}]}`))
	line := twinbox(t, "outbox", "tail", "--no-headers", "--admin", "notification="+addr).stdout
	require.LessOrEqual(t, utf8.RuneCountInString(line)-1, 100, line)
	require.Regexp(t, `^notification@1234567 +\d+[smhd] +verification-email-sent +`+aKey+` +published\n$`, line)
}
