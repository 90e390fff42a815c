package devstack

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local/realkafka"
)

type KafkaCommand struct {
	Addr string `help:"Where the broker listens. Port 0 takes a free one." default:"127.0.0.1:9092"`
	Data string `help:"Folder of its data, kept between runs." default:".twinbox/kafka-real"`
}

// Run runs Kafka until the context ends. An earlier end of the process is an error.
func (c *KafkaCommand) Run(ctx context.Context, to *kong.Context) error {
	server, err := realkafka.Start(ctx, realkafka.Config{
		Addr: c.Addr,
		Dir:  c.Data,
		Progress: func(what string) {
			_, _ = fmt.Fprintln(to.Stderr, what+" ...")
		},
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(to.Stdout, "Apache Kafka %s on %s, data in %s; Ctrl-C stops it.\n"+
		"Use it: make run ARGS='--kafka-brokers %s'\n", realkafka.Version, server.Addr(), c.Data, server.Addr())
	select {
	case <-ctx.Done():
		_, _ = fmt.Fprintln(to.Stderr, "\nStopping Apache Kafka ...")
	case <-server.Done():
		err = errors.New("kafka has ended; the reason is in kafka.log in its data folder")
	}
	return errors.Join(err, server.Stop())
}
