package local_test

import (
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// Idle connections must leave descriptors for operators.
func TestConnectionsWithoutEndLeaveRoom(t *testing.T) {
	t.Parallel()
	const descriptors = 512
	stack := startChild(t, folder(t), filesVariable+"=512")
	at := at(stack.API)
	require.Equal(t, http.StatusCreated, signUp(t, at, "before@example.org"))
	reached := append([]string{stack.API}, stack.Others...)
	for _, attack := range []struct {
		targets []string
		alive   []string
	}{
		{reached[:1], stack.Admins},
		{reached[1:2], stack.Admins},
		{reached, stack.Admins},
		{slices.Concat(reached, stack.Admins), nil},
	} {
		var open []net.Conn
		for i := range 3 * descriptors {
			conn, err := net.DialTimeout("tcp", attack.targets[i%len(attack.targets)], time.Second)
			if err != nil { // what the system keeps for the process is full as well
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				break
			}
			open = append(open, conn)
		}
		for _, addr := range attack.alive {
			require.Equal(t, http.StatusOK, status(t, "http://"+addr+"/livez"))
		}
		for _, conn := range open {
			require.NoError(t, conn.Close())
		}
	}
	for _, addr := range stack.Admins {
		testkit.Until(t, func() bool { return status(t, "http://"+addr+"/readyz") == http.StatusOK },
			"the broker takes connections again")
	}
	testkit.Until(t, func() bool { return signUp(t, at, "after@example.org") == http.StatusCreated })
	require.NoError(t, stack.cmd.Process.Signal(os.Interrupt))
	require.NoError(t, stack.cmd.Wait())
}

func status(t *testing.T, url string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
