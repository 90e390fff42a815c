// Package config reads environment variables into a struct, and reports all problems together.
//
//	type Config struct {
//		DatabaseURL config.Secret `env:"DATABASE_URL,required" format:"postgres" doc:"where the service stores"`
//		Lease       time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"..."`
//		LogLevel    string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"..."`
//		Inbox       InboxConfig   `envPrefix:"INBOX_"`
//	}
//
// Types: string (and types made of it), [Secret], bool, int, int32, int64, [time.Duration], []string and
// [][netip.Prefix]. Tags:
//
//   - env: the variable; ",required" makes it mandatory.
//   - min, max: bounds of a number, a duration, or a text's bytes. Without min, integers start at 0 and durations are
//     positive.
//   - oneof: the allowed words, in any case; the tag's is stored.
//   - format: a name of [Format]; in a list, of each entry.
//   - envPrefix: on a struct field, the prefix of the names inside it.
//
// A config with the method Rules() []Rule adds its cross checks.
//
// No problem, log record or description shows a secret. X_FILE may name a file that holds the secret X.
package config
