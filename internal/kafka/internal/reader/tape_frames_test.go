package reader

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// frame is what goes over the wire: a size, and behind it the rest.
func frame(parts ...any) []byte {
	var body bytes.Buffer
	for _, part := range parts {
		_ = binary.Write(&body, binary.BigEndian, part)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(body.Len())), body.Bytes()...)
}

// The tape lies above TLS, so it has what the broker said and not what was on the cable.
func TestATapeOverTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	served := make(chan error, 1)
	answer := []byte("no answer that makes sense")
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer func() { _ = conn.Close() }()
			_, err = io.ReadFull(conn, make([]byte, 12))
		}
		if err == nil { // another request's answer comes first
			_, err = conn.Write(append(frame(uint32(8), []byte("other")), frame(uint32(9), answer)...))
		}
		served <- err
	}()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	recorder := &tape{tls: &tls.Config{RootCAs: roots}}
	conn, err := recorder.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write(frame(uint16(apiFetch), uint16(fetchVersion), uint32(9)))
	require.NoError(t, err)
	read, err := io.ReadAll(iotest.OneByteReader(conn))
	require.NoError(t, err)
	require.Len(t, read, 8+5+8+len(answer), "and the reader gets all of it")
	require.NoError(t, <-served)
	kept, size := recorder.records()
	require.Equal(t, string(answer), string(kept), "the whole of it, where no records can be found in it")
	require.Equal(t, len(answer), size)
}

// Of any bytes a tape keeps some, and never more than there are.
func TestATapeOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		answer := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "answer")
		here, there := net.Pipe()
		recorder := &tape{}
		c := &tapedConn{here, recorder}
		go func() {
			_, _ = io.ReadFull(there, make([]byte, 12))
			_, _ = there.Write(frame(uint32(1), answer))
			_ = there.Close()
		}()
		_, err := c.Write(frame(uint16(apiFetch), uint16(fetchVersion), uint32(1)))
		require.NoError(t, err)
		_, err = io.ReadAll(c)
		require.NoError(t, err)
		kept, size := recorder.records()
		require.NotEmpty(t, kept)
		require.True(t, bytes.Contains(answer, kept))
		require.LessOrEqual(t, len(kept), size)
	})
}
