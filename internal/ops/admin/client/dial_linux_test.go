package client

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deaf fills the queue of a listener that no process accepts from, like an address behind a firewall.
func deaf(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	local, is := name.(*syscall.SockaddrInet4)
	require.True(t, is)
	addr := "127.0.0.1:" + strconv.Itoa(local.Port)
	for range 16 {
		dialer := net.Dialer{Timeout: 200 * time.Millisecond}
		conn, err := dialer.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Skip("this system queues connections without a bound")
	return ""
}

func TestAnAddressThatIsDeafIsGivenUp(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: newTransport(100 * time.Millisecond)}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+deaf(t), nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "before the caller would have to")
}
