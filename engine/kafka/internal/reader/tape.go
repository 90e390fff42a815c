package reader

import (
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

// Taped makes a reader that also shows what the broker sent of a batch that cannot be read.
func Taped(brokers []string, settings *sarama.Config) *Reader {
	return &Reader{brokers: brokers, settings: settings, tape: &tape{}}
}

// tape opens connections that keep the beginning of the last answer to a fetch, as it came. Sarama shows nothing of an
// answer that it cannot decode, and a dead letter without bytes is of no use. TLS is done here, below the tape.
type tape struct {
	dialer net.Dialer
	tls    *tls.Config // nil: none

	mu    sync.Mutex
	conns map[string]*tapedConn // by address, the last one each
}

// Dial implements sarama's dialer.
func (t *tape) Dial(network, addr string) (net.Conn, error) {
	conn, err := t.dialer.Dial(network, addr)
	if err != nil {
		return nil, err
	}
	if t.tls != nil {
		cfg := t.tls.Clone()
		if cfg.ServerName == "" {
			if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
				return nil, err
			}
		}
		conn = tls.Client(conn, cfg)
	}
	taped := &tapedConn{Conn: conn}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = make(map[string]*tapedConn)
	}
	t.conns[addr] = taped
	return taped, nil
}

// records are the records in the last answer to a fetch from the broker, as far as they were kept, and how many bytes
// there were. Of an answer that makes no sense it is the whole.
func (t *tape) records(addr string) (kept []byte, size int) {
	t.mu.Lock()
	conn := t.conns[addr]
	t.mu.Unlock()
	if conn == nil {
		return nil, 0
	}
	return conn.records()
}

// tapedConn looks at the frames that go through it. Requests are written whole; answers are read in any pieces.
type tapedConn struct {
	net.Conn

	mu      sync.Mutex
	fetch   uint32 // correlation id of the last fetch
	version int16  // of its request
	answer  []byte // the beginning of its answer, behind the correlation id
	size    int    // of all of it

	head []byte // of the frame that is read: its size and correlation id
	left int    // bytes of the frame still to come
	keep bool   // it is the answer
}

func (c *tapedConn) Write(p []byte) (int, error) {
	if len(p) >= 12 && binary.BigEndian.Uint16(p[4:]) == apiFetch {
		c.mu.Lock()
		c.version = int16(binary.BigEndian.Uint16(p[6:]))
		c.fetch = binary.BigEndian.Uint32(p[8:])
		c.answer, c.size = c.answer[:0], 0
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *tapedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	for seen := p[:n]; len(seen) > 0; {
		seen = seen[c.see(seen):]
	}
	return n, err
}

// see takes the next piece of a frame and returns its length.
func (c *tapedConn) see(p []byte) int {
	if c.left == 0 {
		n := min(8-len(c.head), len(p))
		if c.head = append(c.head, p[:n]...); len(c.head) == 8 {
			c.left = max(0, int(binary.BigEndian.Uint32(c.head))-4)
			if c.keep = binary.BigEndian.Uint32(c.head[4:]) == c.fetch; c.keep {
				c.size = c.left
			}
			c.head = c.head[:0]
		}
		return n
	}
	n := min(c.left, len(p))
	if c.keep {
		c.answer = append(c.answer, p[:min(n, MaxDamage+answerHead-len(c.answer))]...)
	}
	c.left -= n
	return n
}

func (c *tapedConn) records() (kept []byte, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, size := len(c.answer), 0
	if c.version == fetchVersion {
		at, size = findRecords(c.answer)
	}
	if size == 0 || at >= len(c.answer) {
		at, size = 0, c.size
	}
	rest := c.answer[at:]
	return append([]byte(nil), rest[:min(len(rest), size, MaxDamage)]...), size
}

// findRecords is where the records of the one partition begin that was asked for, and how many bytes they have.
func findRecords(answer []byte) (at, size int) {
	r := frameReader{rest: answer}
	r.uvarint()            // tagged fields of the header
	r.skip(4 + 2 + 4)      // throttle time, error, session
	r.uvarint()            // topics
	r.skip(r.length())     // name
	r.uvarint()            // partitions
	r.skip(4 + 2 + 3*8)    // partition, error, high watermark, last stable offset, log start offset
	for range r.length() { // aborted transactions
		r.skip(2 * 8)
		r.uvarint()
	}
	r.skip(4) // preferred replica
	size = r.length()
	return len(answer) - len(r.rest), size
}

// frameReader reads a frame of the protocol. Behind its end there are zeros.
type frameReader struct{ rest []byte }

func (r *frameReader) skip(n int) { r.rest = r.rest[min(n, len(r.rest)):] }

func (r *frameReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(max(n, 0))
	if n <= 0 {
		r.rest = nil
		return 0
	}
	return v
}

// length is that of a compact string, array or bytes.
func (r *frameReader) length() int {
	const most = 1 << 31
	return int(min(max(r.uvarint(), 1), most)) - 1
}
