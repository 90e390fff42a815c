package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestFormatsTakeWhatIsRight(t *testing.T) {
	t.Parallel()
	for format, texts := range map[config.Format][]string{
		config.FormatAddress: {
			"a:1", "kafka_1.local:65535", "EXAMPLE.org.:80", "[::1]:80", "[fe80::1%eth0]:80", "10.0.0.1:9092",
		},
		config.FormatListen: {":80", ":0", "localhost:80", "0.0.0.0:80", "[::]:80", "[::1]:0"},
		config.FormatURL: {
			"http://a", "https://example.org", "https://example.org/", "https://example.org/shop/", "http://127.0.0.1:8080",
			"http://[::1]:8080/a", "https://example.org:443/a-b/c_d/%C3%A4/..a/b..", "HTTPS://EXAMPLE.ORG",
		},
		"mail": {
			"a@example.org", "Twinbox <no-reply@example.org>", "root@localhost", `"Twinbox, Inc." <a@example.org>`,
			"Zwölf <a@example.org>",
		},
		"network": {"10.0.0.0/8", "10.0.0.1/32", "fd00::/8", "::1/128", "128.0.0.0/1"},
		"postgres": {
			"postgres://db/x", "postgres://u:p%23@db:5432/x?sslmode=disable", "postgres://u@a:1,b:2/x", "postgres://[::1]/x",
			"postgres:///x?host=/run/postgresql", "postgres://localhost/x?host=/tmp",
		},
		"token": {"abcDEF123+/=~"},
		"host":  {"box.example.org", "10.0.0.1", "::1"},
	} {
		for _, text := range texts {
			require.Empty(t, format.Check(text), "%s %s", format, text)
		}
	}
}
