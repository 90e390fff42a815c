package broker_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/test/kafkatest"
)

func TestWhatIsNotKafkaEndsItsConnection(t *testing.T) {
	b := start(t, broker.Config{})
	frame := func(size uint32, kind, version uint16, rest string) string {
		head := binary.BigEndian.AppendUint32(nil, size)
		head = binary.BigEndian.AppendUint16(head, kind)
		return string(binary.BigEndian.AppendUint16(head, version)) + rest
	}
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, text := range map[string]string{
		"http":                 "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"http post":            "POST / HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("x", 100_000),
		"tls":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"zeros":                strings.Repeat("\x00", 100),
		"four gigabytes":       frame(1<<32-1, 3, 12, "x"),
		"above Kafka's limit":  frame(100<<20+1, 3, 12, "x"),
		"shorter than a head":  frame(3, 3, 12, "x"),
		"an unknown kind":      frame(8, 9999, 0, "\x00\x00\x00\x01"),
		"a negative kind":      frame(8, 0xffff, 0, "\x00\x00\x00\x01"),
		"a negative version":   frame(8, 3, 0xffff, "\x00\x00\x00\x01"),
		"a version to come":    frame(8, 3, 0x7fff, "\x00\x00\x00\x01"),
		"nothing behind it":    frame(4, 3, 12, ""),
		"garbage of that kind": frame(300, 0, 9, strings.Repeat("\xff", 300)),
	} {
		conn, err := net.Dial("tcp", b.Addr())
		require.NoError(t, err, name)
		_, err = io.WriteString(conn, text)
		if err == nil {
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
			_, err = io.Copy(io.Discard, conn)
		}
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, name)
		require.NoError(t, conn.Close())
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "the claimed size was not allocated")

	topic := kafkatest.Topic(t, []string{b.Addr()}, 1)
	require.NoError(t, send(t, b.Addr(), topic, "still here"))
}

func TestARequestInPieces(t *testing.T) {
	t.Parallel()
	b := start(t, broker.Config{})
	conn, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	for range 3 {
		// ApiVersions 0 of a client without a name.
		request := []byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff}
		for i := range request {
			_, err := conn.Write(request[i : i+1])
			require.NoError(t, err)
		}
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		head := make([]byte, 8)
		_, err = io.ReadFull(conn, head)
		require.NoError(t, err)
		require.Equal(t, byte(7), head[7], "the correlation id")
		_, err = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head))-4)
		require.NoError(t, err)
	}
}
