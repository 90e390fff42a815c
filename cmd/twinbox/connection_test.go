package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

func TestWhatElseRunsInAFolderIsAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := append(slices.Clip(serviceNames), "accounts", "ordering")
	addresses := map[string]string{}
	for _, name := range running {
		addresses[name] = "a:1"
	}
	content, err := json.Marshal(map[string]any{"services": addresses, "token": "t"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, client.OperatorsFile), content, 0o600))
	found, err := (&Connection{Dir: dir}).services()
	require.NoError(t, err)
	var asked []string
	for _, s := range found {
		asked = append(asked, s.Name)
	}
	require.Equal(t, running, asked)
}

func TestAServiceWithoutAnAddressIsNamed(t *testing.T) {
	t.Parallel()
	addr := listener(t, says(`{"items":[]}`))
	require.Contains(t, at(t, addr, "", "dlq", "list").stderr,
		"notification is not asked: give its address too, --admin notification=HOST:PORT")
	require.Empty(t, at(t, addr, "", "dlq", "list", "--service", "customer").stderr)
	require.NotContains(t, at(t, addr, addr, "dlq", "list").stderr, "notification")
}

func TestWhereTheServicesAre(t *testing.T) {
	both := map[string]string{"billing": "b:1", "accounts": "a:1"}
	for name, c := range map[string]struct {
		operator Connection
		token    string
		asked    []string
		says     string
	}{
		"both":        {Connection{Admin: both}, "t", []string{"accounts", "billing"}, ""},
		"one of both": {Connection{Admin: both, Service: "billing"}, "t", []string{"billing"}, ""},
		"unknown":     {Connection{Admin: both, Service: "bills"}, "t", nil, "bills is not known, but of accounts, billing"},
		"no address": {
			Connection{Admin: both, Service: "orders"}, "t", nil, "--admin orders=HOST:PORT",
		},
		"a comma":     {Connection{Admin: map[string]string{"a": "a:1,b=b:1"}}, "t", nil, "a ; separates services"},
		"no token":    {Connection{Admin: both}, "", nil, "--token-file"},
		"bad address": {Connection{Admin: map[string]string{"accounts": "a b\x00:1"}}, "t", nil, "accounts"},
	} {
		t.Setenv(tokenVariable, c.token)
		services, err := c.operator.services()
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
			require.Equal(t, service.ExitUsage, exitCode(err), name)
			continue
		}
		require.NoError(t, err, name)
		var asked []string
		for _, s := range services {
			asked = append(asked, s.Name)
		}
		require.Equal(t, c.asked, asked, name)
	}
}
