package local

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

var tuning = map[string]string{
	"LOG_LEVEL":        "info",
	"SMTP_TIMEOUT":     "5s",
	"SHUTDOWN_TIMEOUT": "15s",
}

type UsageError string

func (e UsageError) Error() string { return string(e) }

func (UsageError) ExitCode() int { return service.ExitUsage }

func readSettings(cfg Config) (map[string]string, error) {
	settings := map[string]string{}
	owned := (&stack{cfg: cfg}).owned("")
	var problems []error
	refuse := func(setting, reason string) {
		problems = append(problems, UsageError("setting "+setting+": "+reason))
	}
	for _, entry := range cfg.Settings {
		name, value, ok := strings.Cut(entry, "=")
		_, own := owned[name]
		switch {
		case !ok:
			refuse(entry, "write it as NAME=VALUE")
		case own:
			refuse(name, "this program sets it; addresses have flags of their own")
		case !slices.ContainsFunc(cfg.services(), func(s eventing.Described) bool { return s.Unset().Reads(name) }):
			refuse(name, "no service reads it")
		default:
			settings[name] = value
		}
	}
	return settings, errors.Join(problems...)
}

const (
	// placeholderAPI replaces the API's address until that listens.
	placeholderAPI    = "127.0.0.1:8080"
	placeholderSecret = "0123456789abcdef0123456789abcdef"
)

func checkSettings(cfg Config) error {
	settings, err := readSettings(cfg)
	h := &stack{cfg: cfg, settings: settings, secret: placeholderSecret, at: Addresses{
		KafkaBrokers: cmp.Or(cfg.KafkaBrokers, "127.0.0.1:9092"), SMTP: "127.0.0.1:1025",
		Databases: map[string]string{}, AdminToken: placeholderSecret,
	}}
	h.cfg.Services = map[string]Listen{} // checkAddresses reports addresses by their flags
	for name, listen := range cfg.Services {
		h.cfg.Services[name] = Listen{Admin: freePort}
		if listen.API != "" {
			h.cfg.Services[name] = Listen{API: freePort, Admin: freePort}
		}
		h.at.Databases[name] = "postgres://localhost/placeholder"
	}
	_, invalid := h.configure()
	return errors.Join(err, invalid)
}

func (h *stack) configure() (map[string]*eventing.Instance, error) {
	instances := map[string]*eventing.Instance{}
	var problems []error
	for _, s := range h.cfg.services() {
		instance, err := s.Load(h.environ(s))
		if err != nil {
			problems = append(problems, fmt.Errorf("configure %s: %w", s.Name, err))
		}
		instances[s.Name] = instance
	}
	return instances, errors.Join(problems...)
}

func (h *stack) environ(s eventing.Described) (list []string) {
	environ := map[string]string{}
	unset := s.Unset()
	for _, layer := range []map[string]string{tuning, h.settings, h.owned(s.Name)} {
		for name, value := range layer {
			if unset.Reads(name) {
				environ[name] = value
			}
		}
	}
	for name, value := range environ {
		list = append(list, name+"="+value)
	}
	return list
}

func (h *stack) owned(name string) map[string]string {
	return map[string]string{
		"DATABASE_URL": h.at.Databases[name], "KAFKA_BROKERS": h.at.KafkaBrokers, "SMTP_ADDR": h.at.SMTP,
		"HTTP_ADDR": h.cfg.Services[name].API, "ADMIN_ADDR": h.cfg.Services[name].Admin,
		"ADMIN_TOKEN": h.at.AdminToken.Reveal(), "VERIFICATION_SECRET": h.secret,
		"PUBLIC_URL": "http://" + Reachable(cmp.Or(h.at.API(), placeholderAPI)),
	}
}

// Reachable turns an address for every interface into one to connect to, and returns others unchanged.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || (ip != nil && ip.IsUnspecified())) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

func newSecret() string { return rand.Text() + rand.Text() }
