package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// Config bounds what one request may take. Zero values mean the defaults, except where 0 is said to mean off.
type Config struct {
	// MapError translates the errors of a service, of its rules and of its database. It returns nil for an error it
	// does not know. Default: knows none.
	MapError func(error) *Error
	// MaxBodyBytes is the longest body that [Decode] reads. Default 64 KiB.
	MaxBodyBytes int64
	// RequestTimeout is how long a handler may take, body included, before its context ends. Default 5 s.
	RequestTimeout time.Duration
	// CheckBody, if set, has the last word about each body that [Decode] has read and found right in itself: the place for
	// a schema. Default: nothing more is checked.
	CheckBody func(r *http.Request, body []byte) error
	// Document is the API's OpenAPI document as JSON, which GET /openapi.json answers with. Default: there is nothing.
	Document []byte
	// RateLimit is how many requests one client may make per RateWindow, as a sliding window; a client is an IPv4
	// address or an IPv6 /64. Per instance, in memory. 0 means off.
	RateLimit int
	// RateWindow belongs to RateLimit. Default 1 min.
	RateWindow time.Duration
	// TrustedProxies are the networks (CIDR) whose X-Forwarded-For is believed, see [ClientOf]. Default: none, the client
	// is the peer of the connection. The header Forwarded (RFC 7239) is not read.
	TrustedProxies []string
	// Registerer takes the metrics http_server_requests_total, http_server_request_duration_seconds and
	// http_server_requests_in_flight. Default: none are kept.
	Registerer prometheus.Registerer
	// Traces gives each request its span. Default: OpenTelemetry's global provider.
	Traces trace.TracerProvider
}

// WithDefaults returns the configuration with its zero values replaced.
func (c Config) WithDefaults() Config {
	if c.MapError == nil {
		c.MapError = func(error) *Error { return nil }
	}
	setDefault(&c.MaxBodyBytes, 64<<10)
	setDefault(&c.RequestTimeout, 5*time.Second)
	setDefault(&c.RateWindow, time.Minute)
	if c.Traces == nil {
		c.Traces = otel.GetTracerProvider()
	}
	return c
}

// proxies are the trusted networks, which Validate has checked.
func (c Config) proxies() []netip.Prefix {
	networks := make([]netip.Prefix, len(c.TrustedProxies))
	for i, network := range c.TrustedProxies {
		networks[i] = netip.MustParsePrefix(network)
	}
	return networks
}

// Validate reports every value that cannot work.
func (c Config) Validate() error {
	var errs []error
	if c.MaxBodyBytes < 0 || c.RequestTimeout < 0 || c.RateLimit < 0 || c.RateWindow < 0 {
		errs = append(errs, errors.New("check web limits: a limit is negative"))
	}
	if c.RateLimit > 0 && c.RateWindow != 0 && c.RateWindow < time.Second {
		errs = append(errs, errors.New("check web limits: the rate window is shorter than 1 s"))
	}
	for _, network := range c.TrustedProxies {
		if _, err := netip.ParsePrefix(network); err != nil {
			errs = append(errs, fmt.Errorf("check trusted proxies: %w", err))
		}
	}
	return errors.Join(errs...)
}

func setDefault[T comparable](value *T, def T) {
	var zero T
	if *value == zero {
		*value = def
	}
}
