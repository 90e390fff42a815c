package broker

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxFrameBytes is Kafka's own socket.request.max.bytes.
	maxFrameBytes = 100 << 20
	// frameTimeout is for the first request of a connection, and for all of a request from its first bytes on.
	frameTimeout = 30 * time.Second
	// headBytes are the size of a request, which does not count itself, its kind and its version.
	headBytes, sizeBytes = 8, 4
)

// errNotKafka ends a connection whose other side speaks something else.
var errNotKafka = errors.New("read request: this is not the Kafka protocol")

// framed lets through what begins like a request of Kafka. The broker behind it takes the first four bytes
// of any connection for a length and allocates as much, 1.2 GB for "GET ", and does not survive an unknown
// kind of request.
type framed struct {
	net.Conn
	head []byte // read, checked and not yet handed on
	left int    // of the request behind the head
}

func newFramed(conn net.Conn) *framed {
	_ = conn.SetReadDeadline(time.Now().Add(frameTimeout)) // a connection that cannot have one fails to read
	return &framed{Conn: conn}
}

// Read hands on at most one request at a time.
func (f *framed) Read(p []byte) (int, error) {
	if len(f.head) == 0 && f.left == 0 {
		if err := f.begin(); err != nil {
			return 0, err
		}
	}
	if len(f.head) > 0 {
		n := copy(p, f.head)
		f.head = f.head[n:]
		return n, nil
	}
	n, err := f.Conn.Read(p[:min(len(p), f.left)])
	if f.left -= n; f.left == 0 && err == nil {
		err = f.SetReadDeadline(time.Time{}) // the next request may take its time to begin
	}
	return n, err
}

// begin reads the head of the next request.
func (f *framed) begin() error {
	head := make([]byte, headBytes)
	n, err := f.Conn.Read(head) // usually all of it
	if err != nil {
		return err
	}
	if err := f.SetReadDeadline(time.Now().Add(frameTimeout)); err != nil {
		return err
	}
	if _, err := io.ReadFull(f.Conn, head[n:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head)
	kind, version := int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:]))
	request := kmsg.RequestForKey(kind)
	if size < headBytes-sizeBytes || size > maxFrameBytes || request == nil || version < 0 {
		return errNotKafka
	}
	f.head, f.left = head, int(size)-(headBytes-sizeBytes)
	if f.left == 0 {
		return f.SetReadDeadline(time.Time{})
	}
	return nil
}
