// Package mailbox is an SMTP server that delivers nothing: it keeps what it receives and shows it on a page.
//
// It is where the mails of `make run` appear, and what tests send to. It listens on loopback only, asks for no
// password and believes every sender.
package mailbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/netutil"

	"example.com/twinbox/internal/web"
)

// Config describes one mailbox. The zero value listens on free ports and keeps mails in memory.
type Config struct {
	// SMTPAddr and HTTPAddr are loopback addresses, host:port. Default 127.0.0.1:0, a free port.
	SMTPAddr, HTTPAddr string
	// Dir keeps the mails, one file each, so that they survive a restart. Default: memory only.
	Dir string
	// Keep is how many mails are kept; the oldest go first. Default 200.
	Keep int
	// Reply, if set, is asked before each answer and may refuse, stall (by not returning) or cut the connection: return
	// nil to go on, [Refuse] for an SMTP answer, [ErrCut] to hang up. Stages in their order: "mail", "rcpt", "data" (the
	// mail has arrived and is not kept yet) and "kept" (it is kept, the client does not know yet). to is empty at "mail"
	// and the first recipient from "data" on. It is called from several connections at once.
	Reply func(stage, from, to string) error
	// Log receives what goes wrong. Default: none.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.SMTPAddr == "" {
		c.SMTPAddr = "127.0.0.1:0"
	}
	if c.HTTPAddr == "" {
		c.HTTPAddr = "127.0.0.1:0"
	}
	if c.Keep <= 0 {
		c.Keep = 200
	}
	if c.Reply == nil {
		c.Reply = func(string, string, string) error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Mailbox is a running mailbox.
type Mailbox struct {
	store    *store
	smtp     *smtp.Server
	http     *http.Server
	listener net.Listener // of SMTP
	httpAddr net.Addr
	serving  sync.WaitGroup
	closing  sync.Once
	closeErr error

	ending sync.Once
	done   chan struct{}
	err    error // set before done is closed
}

// maxMessageBytes is what one mail may hold. The mails of this project have a few hundred bytes, and all that are kept
// are in memory.
const maxMessageBytes = 256 << 10

// Start opens both listeners, loads what Dir holds and serves until Close. The context bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Mailbox, error) {
	cfg = cfg.withDefaults()
	store, err := openStore(cfg.Dir, cfg.Keep)
	if err != nil {
		return nil, fmt.Errorf("open mails: %w", err)
	}
	smtpListener, err := listen(ctx, cfg.SMTPAddr)
	if err != nil {
		return nil, err
	}
	httpListener, err := listen(ctx, cfg.HTTPAddr)
	if err != nil {
		return nil, errors.Join(err, smtpListener.Close())
	}
	cfg.SMTPAddr = smtpListener.Addr().String() // the page names it
	m := &Mailbox{
		store: store, smtp: newSMTP(cfg, store), http: newHTTP(cfg, store),
		listener: smtpListener, httpAddr: httpListener.Addr(), done: make(chan struct{}),
	}
	m.serving.Go(func() { m.end("smtp", m.smtp.Serve(smtpListener)) })
	m.serving.Go(func() { m.end("http", m.http.Serve(httpListener)) })
	return m, nil
}

// listen refuses every address that another machine could reach: the mails hold links that log a user in.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	if !IsLoopback(addr) {
		return nil, fmt.Errorf("listen for mails: %s is not a loopback address", addr)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for mails: %w", err)
	}
	return netutil.LimitListener(ln, web.ShareDescriptors(16)), nil
}

// IsLoopback says that only this machine reaches host:port.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// end says once that one of the servers has ended: half a mailbox is none.
func (m *Mailbox) end(server string, err error) {
	m.ending.Do(func() {
		if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, smtp.ErrServerClosed) &&
			!errors.Is(err, net.ErrClosed) {
			m.err = fmt.Errorf("serve %s: %w", server, err)
		}
		close(m.done)
	})
}

// Done is closed when a server has ended, by itself or by Close. [Mailbox.Err] says why.
func (m *Mailbox) Done() <-chan struct{} { return m.done }

// Err is what ended the mailbox once Done is closed; nil after Close.
func (m *Mailbox) Err() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

// SMTPAddr is host:port where mails are taken.
func (m *Mailbox) SMTPAddr() string { return m.listener.Addr().String() }

// HTTPAddr is host:port of the page.
func (m *Mailbox) HTTPAddr() string { return m.httpAddr.String() }

// Messages gives the mails kept, newest first.
func (m *Mailbox) Messages() []Message { return m.store.all() }

// Await returns the mails once there are n, newest first, or the context's error with those there are.
func (m *Mailbox) Await(ctx context.Context, n int) ([]Message, error) {
	for {
		changed := m.store.changed()
		if messages := m.store.all(); len(messages) >= n {
			return messages, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			messages := m.store.all()
			return messages, fmt.Errorf("await mail %d, there are %d: %w", n, len(messages), ctx.Err())
		}
	}
}

const closeTimeout = time.Second

// Close stops both servers and cuts what is connected. Mails that were accepted are kept. Closing twice is fine.
func (m *Mailbox) Close() error {
	m.closing.Do(func() {
		m.closeErr = m.smtp.Close()
		// The server closes the listeners it knows; one whose goroutine has not come that far it would serve for ever.
		if err := m.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			m.closeErr = errors.Join(m.closeErr, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if m.http.Shutdown(ctx) != nil { // a page that is still loading
			m.closeErr = errors.Join(m.closeErr, m.http.Close())
		}
		m.serving.Wait()
	})
	return m.closeErr
}
