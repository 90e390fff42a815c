package reader

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"

	"github.com/IBM/sarama"
)

const (
	// MaxDamage bounds what is kept of records that cannot be read: as much as a broker takes in one batch, unless it was
	// told otherwise.
	MaxDamage = 1 << 20
	// answerHead is room for what stands before the records in an answer.
	answerHead = 64 << 10
	apiFetch   = 1
)

// Taped makes a reader that also shows what the broker sent of a batch that cannot be read. It is for one goroutine.
func Taped(brokers []string, settings *sarama.Config) *Reader {
	return &Reader{brokers: brokers, settings: settings, tape: &tape{}}
}

// tape opens connections and keeps the beginning of what comes after the last fetch, as it came. Sarama shows nothing
// of an answer that it cannot decode, and a dead letter without bytes is of no use. TLS is done here, below the tape.
type tape struct {
	dialer net.Dialer
	tls    *tls.Config // nil: none

	mu    sync.Mutex
	asked net.Conn // over which the last fetch was sent
	fetch uint32   // its correlation id
	heard []byte   // what came there since
}

// record makes sarama use the tape, and ask nothing by itself in between.
func (t *tape) record(cfg *sarama.Config) {
	t.dialer = net.Dialer{Timeout: cfg.Net.DialTimeout, KeepAlive: cfg.Net.KeepAlive}
	if cfg.Net.TLS.Enable {
		t.tls = cfg.Net.TLS.Config
	}
	cfg.Net.TLS.Enable = false
	cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, t
	cfg.Metadata.RefreshFrequency = 0
}

// Dial implements sarama's dialer.
func (t *tape) Dial(network, addr string) (conn net.Conn, err error) {
	if t.tls != nil {
		conn, err = (&tls.Dialer{NetDialer: &t.dialer, Config: t.tls}).DialContext(context.Background(), network, addr)
	} else {
		conn, err = t.dialer.Dial(network, addr)
	}
	if err != nil {
		return nil, err
	}
	return &tapedConn{conn, t}, nil
}

type tapedConn struct {
	net.Conn
	tape *tape
}

// Write implements [net.Conn]. Requests are written whole.
func (c *tapedConn) Write(p []byte) (int, error) {
	if len(p) >= 12 && binary.BigEndian.Uint16(p[4:]) == apiFetch {
		c.tape.mu.Lock()
		c.tape.asked, c.tape.fetch, c.tape.heard = c, binary.BigEndian.Uint32(p[8:]), nil
		c.tape.mu.Unlock()
	}
	return c.Conn.Write(p)
}

// Read implements [net.Conn]. Answers are read in any pieces.
func (c *tapedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tape.mu.Lock()
	defer c.tape.mu.Unlock()
	if c.tape.asked == c {
		c.tape.heard = append(c.tape.heard, p[:min(n, MaxDamage+answerHead-len(c.tape.heard))]...)
	}
	return n, err
}

// records are the records in the answer to the last fetch, as far as they were kept, and how many bytes there were. Of
// an answer that makes no sense it is the whole.
func (t *tape) records() (kept []byte, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := t.heard; len(rest) >= 8; {
		whole := max(0, int(binary.BigEndian.Uint32(rest))-4)
		answer := rest[8:min(len(rest), 8+whole)]
		if binary.BigEndian.Uint32(rest[4:]) != t.fetch {
			rest = rest[8+len(answer):] // to another request
			continue
		}
		at, size := findRecords(answer)
		if size == 0 || at >= len(answer) {
			at, size = 0, whole
		}
		return bytes.Clone(answer[at:min(len(answer), at+size, at+MaxDamage)]), size
	}
	return nil, 0
}

// findRecords is where the records of the one partition begin that was asked for, and how many bytes they have.
func findRecords(answer []byte) (at, size int) {
	skip := func(n int) { at = min(at+n, len(answer)) }
	length := func() int { // of a compact string, array or bytes; 0 behind the end
		v, n := binary.Uvarint(answer[at:])
		skip(max(n, 0))
		return int(min(max(v, 1), 1<<31)) - 1
	}
	length()                   // tagged fields of the header
	skip(4 + 2 + 4)            // throttle time, error, session
	length()                   // topics
	skip(length())             // name
	length()                   // partitions
	skip(4 + 2 + 3*8)          // partition, error, high watermark, last stable offset, log start offset
	skip(length() * (2*8 + 1)) // aborted transactions, without tagged fields
	skip(4)                    // preferred replica
	size = length()
	return at, size
}
