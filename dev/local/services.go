package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service/eventing"
)

// tuning is what suits one process on one machine.
var tuning = map[string]string{
	"LOG_LEVEL":        "info",
	"SMTP_TIMEOUT":     "5s",
	"SHUTDOWN_TIMEOUT": "15s",
}

// A SettingError is about one of [Config.Settings].
type SettingError struct{ Setting, Detail string }

func (e *SettingError) Error() string { return fmt.Sprintf("setting %s: %s", e.Setting, e.Detail) }

// ExitCode is that of a wrong configuration.
func (*SettingError) ExitCode() int { return 2 }

// configure reads all configurations as if from an environment that holds the addresses, the tuning and the settings.
func configure(cfg Config, at Addresses, secret string) (map[string]*eventing.Instance, error) {
	settings, err := readSettings(cfg, environment("", cfg, at, secret))
	problems := []error{err}
	instances := map[string]*eventing.Instance{}
	for _, s := range cfg.services() {
		instances[s.Name], err = load(s, settings, environment(s.Name, cfg, at, secret))
		if err != nil {
			problems = append(problems, fmt.Errorf("configure %s: %w", s.Name, err))
		}
	}
	return instances, errors.Join(problems...)
}

// environment is what this program decides for a service.
func environment(name string, cfg Config, at Addresses, secret string) map[string]string {
	return map[string]string{
		"DATABASE_URL": at.Databases[name], "KAFKA_BROKERS": at.KafkaBrokers, "SMTP_ADDR": at.SMTP,
		"HTTP_ADDR": cfg.Services[name].API, "ADMIN_ADDR": cfg.Services[name].Admin,
		"ADMIN_TOKEN": at.AdminToken.Reveal(), "VERIFICATION_SECRET": secret,
		"PUBLIC_URL": "http://" + Reachable(at.API()),
	}
}

func load(s eventing.Described, settings, own map[string]string) (*eventing.Instance, error) {
	return s.Load(entries(s, settings, own))
}

// entries are one service's environment. It has only variables that the service knows: a setting may be another one's.
func entries(s eventing.Described, settings, own map[string]string) (list []string) {
	environ := map[string]string{}
	unset := s.Unset()
	for _, layer := range []map[string]string{tuning, settings, own} {
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

func readSettings(cfg Config, owned map[string]string) (map[string]string, error) {
	settings := map[string]string{}
	var problems []error
	for _, entry := range cfg.Settings {
		name, value, ok := strings.Cut(entry, "=")
		_, own := owned[name]
		switch {
		case !ok:
			problems = append(problems, &SettingError{entry, "write it as NAME=VALUE"})
		case own:
			problems = append(problems, &SettingError{name, "this program sets it; addresses have flags of their own"})
		case !slices.ContainsFunc(cfg.all(), func(s eventing.Described) bool { return s.Unset().Reads(name) }):
			problems = append(problems, &SettingError{name, "no service reads it"})
		default:
			settings[name] = value
		}
	}
	return settings, errors.Join(problems...)
}

// Reachable turns an address that means every interface into one to connect to. It returns any other one as it is.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || (ip != nil && ip.IsUnspecified())) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

func newToken() config.Secret {
	token := make([]byte, secretBytes)
	_, _ = rand.Read(token) // never fails
	return config.Secret(hex.EncodeToString(token))
}
