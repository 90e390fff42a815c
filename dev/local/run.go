package local

import (
	"cmp"
	"context"
	"errors"
	"time"

	"example.com/twinbox/internal/services"
)

// drainTimeout is how long the whole stop may take: the services' own drains, one after the other, and the end of the
// parts.
const drainTimeout = time.Minute

// Run starts the stack, shows the summary and runs until ctx is cancelled or something fails. It then stops
// everything in order, services first and PostgreSQL last, and leaves no process behind.
//
// Before anything starts it returns a [RunningError], every [PortError] at once, or everything that is
// wrong with addresses and settings.
// A process that dies without a chance to stop leaves no PostgreSQL behind on Linux, and the next Run recovers.
func Run(ctx context.Context, cfg Config) (err error) {
	began := time.Now()
	cfg = cfg.withDefaults()
	if err := errors.Join(checkAddresses(cfg.listeners()), checkSettings(cfg)); err != nil {
		return err
	}
	f, err := openFolder(cfg.Dir)
	if running, is := errors.AsType[*RunningError](err); is {
		running.ByMake = cfg.ByMake
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.lock.Release()) }()
	if err := checkPorts(ctx, cfg.listeners(), cfg.ByMake); err != nil {
		return err
	}
	logs := newLogs(cfg.Err, cfg.Verbose)
	defer func() { err = errors.Join(err, logs.close()) }()
	log, err := logs.fileLogger(f, "stack", "info", "json") // what it says of failures is also what Run returns
	if err != nil {
		return err
	}

	h := newStack(ctx, cfg, f, logs, log)
	err = h.start(ctx)
	switch {
	case ctx.Err() != nil || errors.Is(err, errPartEnded): // the group knows and stops
	case err != nil:
		h.run("start", func(context.Context) error { return err })
	default:
		log.InfoContext(ctx, "ready", "took", time.Since(began))
		shown := summary{at: h.at, programs: cfg.Programs, dir: cfg.Dir, took: time.Since(began), colour: cfg.Colour}
		shown.write(cfg.Out)
		cfg.Ready(h.at)
	}
	return h.group.Wait()
}

// placeholderAPI stands for the address of the API until that listens: its port may be any free one.
const placeholderAPI = "127.0.0.1:8080"

// placeholderSecret is as long as the secrets that are not made yet.
const placeholderSecret = "0123456789abcdef0123456789abcdef"

// checkSettings reports everything that is wrong with the settings, before any address is known: others stand in.
func checkSettings(cfg Config) error {
	const database = "postgres://localhost/placeholder"
	free := Config{Settings: cfg.Settings, Services: map[string]Listen{}}
	free.Extra = cfg.Extra
	for name := range cfg.Services {
		free.Services[name] = Listen{}
	}
	free = free.withDefaults()
	stand := Addresses{
		Services:     map[string]Listen{services.Names()[0]: {API: placeholderAPI}},
		KafkaBrokers: cmp.Or(cfg.KafkaBrokers, "127.0.0.1:9092"), SMTP: "127.0.0.1:1025",
		Databases: map[string]string{}, AdminToken: placeholderSecret,
	}
	for _, s := range cfg.all() {
		stand.Databases[s.Name] = database
	}
	_, err := configure(free, stand, placeholderSecret)
	return err
}
