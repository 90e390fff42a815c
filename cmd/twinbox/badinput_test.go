package main

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

func TestExitCodesOfErrors(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{
		400: service.ExitUsage, 422: service.ExitUsage, 404: exitNotFound, 401: exitRefused, 403: exitRefused,
		409: exitRefused, 410: exitRefused, 413: service.ExitFailure, 500: service.ExitFailure, 503: service.ExitFailure,
	} {
		problem := &client.ProblemError{Problem: adminapi.Problem{Status: status}}
		require.Equal(t, want, exitCode(fmt.Errorf("edit: %w", problem)), status)
	}
	require.Equal(t, 0, exitCode(nil))
	require.Equal(t, 1, exitCode(errors.New("x")))
	require.Equal(t, 5, exitCode(partial(errors.New("x"))))
	require.Equal(t, 1, exitCode(&client.UnreachableError{Err: syscall.EPIPE}), "a service is gone")
	require.Equal(t, 5, exitCode(partial(&client.UnreachableError{Err: syscall.EPIPE})))
}
