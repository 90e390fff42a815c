package notification

import (
	"context"
	"crypto/tls"
	"net"
)

// door is the way to a mail server. The mail library leaves the connection open when hello, TLS or login fails on it;
// the sender, which comes again every two seconds for as long as that lasts, would fill the server with them.
type door struct {
	tls       *tls.Config
	encrypted bool // from the first byte
	opened    net.Conn
}

// dial is the mail library's.
func (d *door) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	if d.encrypted {
		conn, err = (&tls.Dialer{Config: d.tls}).DialContext(ctx, network, addr)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
	}
	if err == nil {
		d.opened = conn
	}
	return conn, err
}

// shut hangs up if somebody has picked up.
func (d *door) shut() {
	if d.opened != nil {
		_ = d.opened.Close()
	}
}
