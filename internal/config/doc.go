// Package config reads a service's settings from its environment: into a struct, checked, all problems at once. It
// checks the variables' texts; github.com/caarlos0/env then converts those that are right and takes defaults for the
// rest.
//
// A field names its variable by tag and takes part in the checks that its type and its other tags ask for:
//
//	type Config struct {
//		DatabaseURL config.Secret `env:"DATABASE_URL,required" format:"postgres" doc:"where the service stores"`
//		Brokers     []string      `env:"KAFKA_BROKERS,required" format:"brokers" doc:"first brokers to ask"`
//		Lease       time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"..."`
//		LogLevel    string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"..."`
//		Inbox       InboxConfig   `envPrefix:"INBOX_"`
//	}
//
// Types: string (and types made of it), [Secret], bool, int, int32, int64, [time.Duration], []string and, with the
// format network, [][netip.Prefix]. Tags:
//
//   - env: the variable; with ",required" it must be set.
//   - envDefault: the value when the variable is not set, checked like any other.
//   - min, max: bounds; of the value for numbers and durations, of the length in bytes for text.
//     Without min, integers start at 0 and durations must be positive; without max, durations end at ten years.
//   - oneof: the words allowed, in lower case, separated by blanks; they may be given in any case.
//   - format: address, listen, url, mail, name, token or postgres for text; brokers, host or network for lists.
//   - doc: what the variable does, for people.
//   - envPrefix: on a struct field, put before the names inside it.
//
// A config whose type has the method Rules() []Rule adds its cross checks to the same list.
//
// The values of secrets appear in no problem, no log record and no description. A secret X may also be given as
// X_FILE, the path of a file that holds it.
package config
