// Package mailbox is an SMTP server that delivers no mail: it keeps the last ones in memory and shows them on a page.
// It listens on loopback only, asks for no password and believes every sender.
package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/net/netutil"

	"example.com/twinbox/internal/web"
)

type Config struct {
	// SMTPAddr and HTTPAddr are loopback addresses, host:port.
	SMTPAddr, HTTPAddr string
	// Keep bounds the kept mails; the oldest go first. Default 200.
	Keep int
}

type Mailbox struct {
	cfg      Config
	smtp     *smtp.Server
	http     *http.Server
	listener net.Listener
	serving  sync.WaitGroup
	close    func() error

	mu       sync.Mutex
	last     int
	messages []Message
}

// Start serves until Close. The context bounds the start alone.
func Start(ctx context.Context, cfg Config) (*Mailbox, error) {
	cfg.Keep = cmp.Or(cfg.Keep, 200)
	smtpListener, err := listen(ctx, cfg.SMTPAddr)
	if err != nil {
		return nil, err
	}
	httpListener, err := listen(ctx, cfg.HTTPAddr)
	if err != nil {
		return nil, errors.Join(err, smtpListener.Close())
	}
	cfg.SMTPAddr, cfg.HTTPAddr = smtpListener.Addr().String(), httpListener.Addr().String()
	m := &Mailbox{cfg: cfg, listener: smtpListener}
	m.smtp, m.http, m.close = m.newSMTP(), m.newHTTP(), sync.OnceValue(m.stop)
	// The listeners outlive errors that pass.
	m.serving.Go(func() { _ = m.smtp.Serve(smtpListener) })
	m.serving.Go(func() { _ = m.http.Serve(httpListener) })
	return m, nil
}

// listen refuses addresses that other machines reach: the mails hold links that log a user in.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	addr = cmp.Or(addr, "127.0.0.1:0")
	if !IsLoopback(addr) {
		return nil, fmt.Errorf("listen for mails: %s is not a loopback address", addr)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for mails: %w", err)
	}
	return netutil.LimitListener(ln, web.ShareDescriptors(16)), nil
}

// IsLoopback reports whether only this machine reaches host:port.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func (m *Mailbox) SMTPAddr() string { return m.cfg.SMTPAddr }

func (m *Mailbox) HTTPAddr() string { return m.cfg.HTTPAddr }

func (m *Mailbox) Messages() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := slices.Clone(m.messages)
	slices.Reverse(messages)
	return messages
}

func (m *Mailbox) keep(from string, to []string, raw []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	message := parse(raw)
	message.ID, message.From, message.To, message.ReceivedAt = strconv.Itoa(m.last), from, to, time.Now().UTC()
	m.messages = append(m.messages, message)
	m.messages = m.messages[max(0, len(m.messages)-m.cfg.Keep):]
}

const closeTimeout = time.Second

// Close stops both servers and cuts the connections. A second call does nothing.
func (m *Mailbox) Close() error { return m.close() }

func (m *Mailbox) stop() error {
	err := m.smtp.Close()
	// The server closes only listeners that it knows. If its goroutine has not run yet, it would serve this one for ever.
	if closed := m.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if m.http.Shutdown(ctx) != nil { // a page that is still loading
		err = errors.Join(err, m.http.Close())
	}
	m.serving.Wait()
	return err
}
