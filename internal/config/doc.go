// Package config reads a service's settings from its environment: into a struct, checked, all problems together.
// github.com/caarlos0/env converts the values; this package names the variable of each problem and keeps secrets out.
//
// A field names its variable by tag:
//
//	type Config struct {
//		DatabaseURL config.Secret `env:"DATABASE_URL,required" format:"postgres" doc:"where the service stores"`
//		Brokers     []string      `env:"KAFKA_BROKERS,required" format:"brokers" doc:"first brokers to ask"`
//		Lease       time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"..."`
//		LogLevel    string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"..."`
//		Inbox       InboxConfig   `envPrefix:"INBOX_"`
//	}
//
// Types: string (and types made of it), [Secret], bool, int, int32, int64, [time.Duration], []string and
// [][netip.Prefix]. Tags:
//
//   - env: the variable; with ",required" it must be set.
//   - envDefault: the value when the variable is not set.
//   - min, max: bounds; of the value for numbers and durations, of the length in bytes for text. Without min, integers
//     start at 0 and durations are positive.
//   - oneof: the words allowed, in lower case, separated by blanks; they may be given in any case.
//   - format: a name of [Format]; of a list, that of each entry.
//   - doc: what the variable does, for people.
//   - envPrefix: on a struct field, put before the names inside it.
//
// A config whose type has the method Rules() []Rule adds its cross checks to the same list.
//
// The values of secrets appear in no problem, no log record and no description. A secret X may also be given as
// X_FILE, the path of a file that holds it.
package config
