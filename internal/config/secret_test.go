package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestSecret_IsNeverShown(t *testing.T) {
	t.Parallel()
	secret := config.Secret("hunter2")
	holder := struct {
		Key  config.Secret
		Keys []config.Secret
		By   map[string]config.Secret
	}{secret, []config.Secret{secret}, map[string]config.Secret{"k": secret}}

	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		fmt.Fprintf(&shown, verb+" "+verb+"\n", secret, holder)
	}
	encoded, err := json.Marshal(holder)
	require.NoError(t, err)
	shown.Write(encoded)
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "secret", secret, "holder", holder)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "secret", secret, "holder", holder)
	shown.Write(logged.Bytes())

	require.NotContains(t, shown.String(), "hunter2")
	require.NotContains(t, shown.String(), fmt.Sprintf("%x", "hunter2"))
	require.Contains(t, string(encoded), `"***"`)
	require.Equal(t, "hunter2", secret.Reveal())
	require.Empty(t, config.Secret("").String(), "one sees that it is not set")
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"": "",
		"postgres://u:hunter2@db:5432/x?sslmode=disable": "postgres://u:***@db:5432/x?sslmode=disable",
		"postgres://u@db/x": "postgres://u@db/x",
		"postgres://db/x?password=hunter2&sslpassword=h2":    "postgres://db/x?***",
		"postgres://db/x?pass%77ord=hunter2":                 "postgres://db/x?***",
		"postgres://u:p%40ss%2Fhunter2@[::1]:5432/x":         "postgres://u:***@[::1]:5432/x",
		"host=db password=hunter2":                           "***",
		"postgres://u:hunter2 @db/x":                         "***",
		"postgres://u:hun/ter2@db/x":                         "***",
		"postgres:hunter2":                                   "***",
		"postgres://u:p@db/x?options=%zz&password=hunter2;a": "postgres://u:***@db/x?***",
	} {
		require.Equal(t, want, config.MaskURL(raw), raw)
	}
}

func TestLoad_ProblemsNeverShowSecrets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("hunter2"), 0o600))
	for _, setting := range []string{
		"DATABASE_URL=hunter2", "DATABASE_URL=postgres://u:hunter2@db:x/y", "DATABASE_URL=postgres://u:hunter2@d b/y",
		"DATABASE_URL=postgres://u:hunter2@db/y?sslmode=hunter2", "DATABASE_URL= hunter2", "DATABASE_URL='hunter2'",
		"DATABASE_URL=hunter2\x01", "VERIFICATION_SECRET=hunter2", "VERIFICATION_SECRET_FILE=" + path,
		"KAFKA_BROKERS=user:hunter2@a:9092", "PUBLIC_URL=http://u:hunter2@a", "MAIL_FROM=hunter2",
		"HTTP_ADDR=hunter2", "DATABASE_PASSWORD=hunter2", "ENVIRONMENT=hunter2!",
	} {
		err := config.Load(valid(setting), new(sample))
		require.Error(t, err, setting)
		require.NotContains(t, err.Error(), "hunter2", setting)
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "hunter2", setting)
	}
}

func TestLoad_SecretFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.Symlink(write("real", key), filepath.Join(dir, "link")))

	for _, good := range []string{
		write("plain", key), write("newline", key+"\n"), write("crlf", key+"\r\n"), filepath.Join(dir, "link"),
	} {
		for _, environ := range [][]string{fileEnv(good), append(fileEnv(good), "VERIFICATION_SECRET=")} {
			var cfg sample
			require.Empty(t, load(t, environ, &cfg), good)
			require.Equal(t, key, cfg.Key.Reveal(), good)
		}
	}
	for _, path := range []string{
		"", filepath.Join(dir, "no"), filepath.Join(dir, "plain", "x"), dir, filepath.Join(dir, "fifo"), "/dev/null",
		write("nothing", ""), write("only newline", "\n"), write("two newlines", key+"\n\n"), write("blank", key+" "),
		write("two lines", key+"\n"+key), write("binary", key+"\xff\xfe"), write("short", "k"),
		write("quoted", `"`+key+`"`), write("huge", string(make([]byte, 70<<10))),
	} {
		require.Equal(t, []string{"VERIFICATION_SECRET"}, load(t, fileEnv(path), new(sample)), path)
	}
	require.Equal(t, []config.Problem{{"VERIFICATION_SECRET", "is set, and so is VERIFICATION_SECRET_FILE"}},
		problems(t, valid("VERIFICATION_SECRET_FILE="+filepath.Join(dir, "plain")), new(sample)))
}

func fileEnv(path string) []string {
	environ := valid("VERIFICATION_SECRET_FILE=" + path)
	kept := environ[:0]
	for _, entry := range environ {
		if !strings.HasPrefix(entry, "VERIFICATION_SECRET=") {
			kept = append(kept, entry)
		}
	}
	return kept
}
