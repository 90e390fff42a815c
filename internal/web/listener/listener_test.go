package listener_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"example.com/twinbox/internal/web/listener"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return ln
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestAFullListenerLetsOthersWait(t *testing.T) {
	t.Parallel()
	ln := listener.Limit(listen(t), 2)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 4 {
		dial(t, ln.Addr().String())
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Fatal("a third connection is open")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, first.Close())
	third := <-accepted
	_ = first.Close() // twice gives back one place
	select {
	case <-accepted:
		t.Fatal("a third connection is open")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, errors.Join(second.Close(), third.Close()))
	fourth := <-accepted
	require.NoError(t, errors.Join(fourth.Close(), ln.Close()))
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

func TestCloseEndsAnAcceptThatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	ln := listener.Limit(listen(t), 1)
	dial(t, ln.Addr().String())
	conn, err := ln.Accept()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := ln.Accept()
		ended <- err
	}()
	require.NoError(t, ln.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	_ = ln.Close()
	require.NoError(t, conn.Close())
}

// failing is a listener whose system is out of something for a while.
type failing struct {
	net.Listener
	errs chan error
}

func (f *failing) Accept() (net.Conn, error) {
	select {
	case err := <-f.errs:
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	default:
		return f.Listener.Accept()
	}
}

func TestAnAcceptOutlivesWhatPasses(t *testing.T) {
	t.Parallel()
	f := &failing{Listener: listen(t), errs: make(chan error, 9)}
	for _, err := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		f.errs <- err
	}
	ln := listener.Limit(f, 1)
	dial(t, ln.Addr().String())
	conn, err := ln.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	f.errs <- syscall.EBADF
	_, err = ln.Accept()
	require.ErrorIs(t, err, syscall.EBADF, "which does not pass")
	require.NoError(t, ln.Close())
}

func TestSharesLeaveDescriptorsForTheRest(t *testing.T) {
	t.Parallel()
	n := listener.Descriptors()
	require.Positive(t, n)
	all := listener.Share(listener.API) + listener.Share(listener.Broker) + 4*listener.Share(listener.Small)
	require.LessOrEqual(t, all, n*2/3)
	require.Equal(t, listener.Least, listener.Share(1<<40))
	require.LessOrEqual(t, listener.Share(1), listener.Most)
}

func TestAConnectionCanBeClosedHalf(t *testing.T) {
	t.Parallel()
	ln := listener.Limit(listen(t), 1)
	client := dial(t, ln.Addr().String())
	conn, err := ln.Accept()
	require.NoError(t, err)
	half, can := conn.(interface{ CloseWrite() error })
	require.True(t, can)
	require.NoError(t, half.CloseWrite())
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = client.Write([]byte("x"))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err, "the other half is open")
	require.NoError(t, errors.Join(conn.Close(), ln.Close()))
}
