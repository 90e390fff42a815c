package local

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/notification"
)

// services are the configurations of both services.
type services struct {
	customer     customer.Config
	notification notification.Config
}

// tuning is what suits one process on one machine: after a kill the next start takes over within seconds, because
// nobody else could be holding the lease or the partitions still.
var tuning = map[string]string{
	"LOG_LEVEL":             "info",
	"OUTBOX_LEASE":          "2s",
	"KAFKA_PUBLISH_TIMEOUT": "1500ms",
	"KAFKA_SESSION_TIMEOUT": "6s",
	"SMTP_TIMEOUT":          "5s",
	"SHUTDOWN_TIMEOUT":      "15s",
}

// A SettingError is about one of [Config.Settings].
type SettingError struct{ Setting, Detail string }

func (e *SettingError) Error() string { return fmt.Sprintf("setting %s: %s", e.Setting, e.Detail) }

// ExitCode is that of a wrong configuration.
func (*SettingError) ExitCode() int { return 2 }

// configure reads both configurations as if from an environment that holds the addresses, the tuning and the settings.
func configure(cfg Config, at Addresses, secret string) (services, error) {
	var s services
	customerEnv := map[string]string{
		"DATABASE_URL": at.CustomerDB, "HTTP_ADDR": cfg.CustomerAPI, "ADMIN_ADDR": cfg.CustomerAdmin,
		"ADMIN_TOKEN":   at.AdminToken.Reveal(),
		"KAFKA_BROKERS": at.KafkaBrokers, "VERIFICATION_SECRET": secret,
	}
	notificationEnv := map[string]string{
		"DATABASE_URL": at.NotificationDB, "ADMIN_ADDR": cfg.NotificationAdmin,
		"ADMIN_TOKEN":   at.AdminToken.Reveal(),
		"KAFKA_BROKERS": at.KafkaBrokers, "VERIFICATION_SECRET": secret,
		"SMTP_ADDR": at.SMTP, "PUBLIC_URL": "http://" + reachable(at.CustomerAPI),
	}
	settings, err := readSettings(cfg.Settings, s, customerEnv, notificationEnv)
	problems := []error{err}
	if err := load(&s.customer, settings, customerEnv); err != nil {
		problems = append(problems, fmt.Errorf("configure customer: %w", err))
	}
	if err := load(&s.notification, settings, notificationEnv); err != nil {
		problems = append(problems, fmt.Errorf("configure notification: %w", err))
	}
	return s, errors.Join(problems...)
}

// load reads one configuration. Only variables that it knows are given to it: a setting may be the other service's.
func load(into any, settings, own map[string]string) error {
	environ := map[string]string{}
	known := variables(into)
	for _, layer := range []map[string]string{tuning, settings, own} {
		for name, value := range layer {
			if slices.Contains(known, name) {
				environ[name] = value
			}
		}
	}
	var entries []string
	for name, value := range environ {
		entries = append(entries, name+"="+value)
	}
	return config.Load(entries, into)
}

func readSettings(list []string, s services, owned ...map[string]string) (map[string]string, error) {
	settings := map[string]string{}
	known := append(variables(&s.customer), variables(&s.notification)...)
	var problems []error
	for _, entry := range list {
		name, value, ok := strings.Cut(entry, "=")
		switch {
		case !ok:
			problems = append(problems, &SettingError{entry, "write it as NAME=VALUE"})
		case slices.ContainsFunc(owned, func(m map[string]string) bool { _, own := m[name]; return own }):
			problems = append(problems, &SettingError{name, "this program sets it; addresses have flags of their own"})
		case !slices.Contains(known, name):
			problems = append(problems, &SettingError{name, "neither service reads it"})
		default:
			settings[name] = value
		}
	}
	return settings, errors.Join(problems...)
}

func variables(cfg any) []string {
	names := map[string]bool{}
	for _, setting := range config.Describe(cfg) {
		names[setting.Variable] = true
	}
	return slices.Collect(maps.Keys(names))
}

// reachable turns an address that means every interface into one to connect to.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || (ip != nil && ip.IsUnspecified())) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
