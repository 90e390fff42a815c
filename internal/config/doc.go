// Package config reads a service's environment variables into a struct, and reports all problems together.
//
// A field names its variable by tag:
//
//	type Config struct {
//		DatabaseURL config.Secret `env:"DATABASE_URL,required" format:"postgres" doc:"where the service stores"`
//		Brokers     []string      `env:"KAFKA_BROKERS,required" format:"address" doc:"first brokers to ask"`
//		Lease       time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"..."`
//		LogLevel    string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"..."`
//		Inbox       InboxConfig   `envPrefix:"INBOX_"`
//	}
//
// Types: string (and types made of it), [Secret], bool, int, int32, int64, [time.Duration], []string and
// [][netip.Prefix]. Tags:
//
//   - env: the variable; ",required" makes it mandatory.
//   - envDefault: the value of an unset variable.
//   - min, max: bounds of a number, a duration, or a text's bytes. Without min, integers start at 0 and durations are
//     positive.
//   - oneof: the allowed words; any case is accepted, and the tag's is stored.
//   - format: a name of [Format]; of a list, that of each entry.
//   - doc: the purpose of the variable.
//   - envPrefix: on a struct field, the prefix of the names inside it.
//
// A config with the method Rules() []Rule adds its cross checks.
//
// No problem, log record or description shows a secret. X_FILE may name a file that holds the secret X.
package config
