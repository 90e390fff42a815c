package main

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTables(t *testing.T) {
	t.Parallel()
	of := table{columns: []string{"ID", "KEY", "ERROR"}, wide: []string{"KEY"}}
	of.add("customer/1", "ada", "check event: schema_violation: /name type")
	of.add("customer/12", "b\x1b[31m\n\xff", "")
	require.Equal(t, ""+
		"ID           KEY       ERROR\n"+
		"customer/1   ada       check event: schema_violation: /name type\n"+
		"customer/12  b?[31m??  -\n", of.text(true, true))
	require.Equal(t, ""+
		"customer/1   check event: schema_violation: /name type\n"+
		"customer/12  -\n", of.text(false, false))
	require.Empty(t, (&table{columns: []string{"ID"}}).text(true, true))
}

func TestATailFitsAScreen(t *testing.T) {
	t.Setenv(tokenVariable, "t")
	addr := listener(t, says(`{"items":[{"position":1234567,"event_id":"`+anID+`","key":"`+aKey+`","version":12,
		"type":"com.example.notification.verification-email-sent.v1","occurred_at":"2026-11-21T16:58:46Z",
		"state":"published"}]}`))
	line := twinbox(t, "outbox", "tail", "--no-headers", "--notification-admin", addr).stdout
	require.LessOrEqual(t, utf8.RuneCountInString(line)-1, 100, line)
	require.Regexp(t, `^notification/1234567 +\d+[smhd] +verification-email-sent +`+aKey+` +published\n$`, line)
}
