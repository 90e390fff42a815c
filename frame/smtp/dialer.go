package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// dialer connects to a mail server and keeps the connection. The mail library leaves the connection open when hello,
// TLS or login fails on it; the sender, which comes again every two seconds for as long as that lasts, would fill the
// server with them.
type dialer struct {
	tls       *tls.Config
	encrypted bool // from the first byte
	opened    net.Conn
}

// dial is the mail library's.
func (d *dialer) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.opened = &bounded{Conn: raw, left: MaxReplyBytes}
	if !d.encrypted {
		return d.opened, nil
	}
	encrypted := tls.Client(d.opened, d.tls)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return encrypted, nil
}

// close closes the connection if there is one.
func (d *dialer) close() {
	if d.opened != nil {
		_ = d.opened.Close()
	}
}

// MaxReplyBytes is what a mail server may say in all on one connection, which carries one mail: the greeting, half a
// dozen replies and the certificates of a TLS handshake are some 10 KB. The mail library reads a line to its end and a
// reply to its last line, however long that is.
const MaxReplyBytes = 256 << 10

var errTooManyReplies = errors.New("the mail server says more than 256 KiB on one connection")

// bounded is a connection from which so much may be read and no more.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errTooManyReplies
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
