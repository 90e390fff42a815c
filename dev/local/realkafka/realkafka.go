// Package realkafka runs a real Apache Kafka without Docker, for tests and `go run ./dev/cmd/devstack kafka`: one KRaft
// node in one Java process, its jars fetched through Maven into the user's cache. It needs Java 17 or newer, and mvn
// for the first start.
package realkafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/dev/local/filelock"
	"example.com/twinbox/dev/local/port"
	"example.com/twinbox/internal/kafka"
)

const Version = "4.3.1"

type Config struct {
	// Addr is host:port of the broker. Default: a free port of 127.0.0.1.
	Addr string
	// Dir keeps data, log and settings. Default: a temporary folder that Stop removes.
	Dir string
	// CacheDir keeps the jars. Default: that of [cache.Path].
	CacheDir string
	Node     int
	// Join is the [Server.Controller] of a node whose cluster this broker joins.
	Join     string
	Settings map[string]string
	// Progress gets the name of each slow step. Default: not called.
	Progress func(string)
}

type Server struct {
	cfg              Config
	addr, controller string
	dir              string
	lock             *flock.Flock // of the folder, until Stop
	process          *child.Process
	output           *child.Tail
}

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

// Start fetches the jars, prepares a new data folder and waits until Kafka answers. If it fails, no process is left. On
// Linux the process ends with this one.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:0")
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	cfg.Node = max(cfg.Node, 1)
	if _, err := exec.LookPath("java"); err != nil {
		return nil, ErrNoJava
	}
	jars, err := ensureJars(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, output: &child.Tail{}}
	if err := s.takeFolder(); err != nil {
		return nil, err
	}
	if err := s.launch(ctx, filepath.Join(jars, "*")); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// make reset looks at this lock.
func (s *Server) takeFolder() (err error) {
	if s.cfg.Dir == "" {
		s.dir, err = os.MkdirTemp("", "kafka-")
	} else if s.dir, err = filepath.Abs(s.cfg.Dir); err == nil {
		err = os.MkdirAll(s.dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	s.lock, err = filelock.Take(filepath.Join(s.dir, "lock"))
	if err != nil && s.cfg.Dir == "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

func (s *Server) launch(ctx context.Context, classes string) error {
	addrs, err := port.Pick(ctx, s.cfg.Addr, "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr, s.controller = addrs[0], cmp.Or(s.cfg.Join, addrs[1])
	settings := filepath.Join(s.dir, "server.properties")
	if err := os.WriteFile(settings, []byte(s.settings()), 0o644); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	java := []string{
		"-XX:+UseSerialGC", "-Djava.io.tmpdir=" + s.dir, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes,
	}
	if _, err := os.Stat(filepath.Join(s.dir, "data", "meta.properties")); err != nil {
		s.cfg.Progress("preparing the data folder of Apache Kafka")
		format := append(slices.Clone(java), "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", settings)
		if err := run(exec.CommandContext(ctx, "java", format...)); err != nil {
			return fmt.Errorf("format kafka's data folder with java (%d or newer is needed): %w", minJava, err)
		}
	}
	log, err := os.Create(filepath.Join(s.dir, "kafka.log"))
	if err != nil {
		return fmt.Errorf("create kafka's log: %w", err)
	}
	s.cfg.Progress("starting Apache Kafka " + Version)
	broker := exec.Command("java", append(java, "-Xmx512m", "kafka.Kafka", settings)...)
	broker.Stdout = io.MultiWriter(log, s.output)
	broker.Stderr = broker.Stdout
	if s.process, err = child.Start(broker, syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("start kafka: %w", err), log.Close())
	}
	go func() {
		<-s.process.Done()
		_ = log.Close()
	}()
	return s.awaitReady(ctx)
}

// clusterID is fixed: a data folder must keep its own.
const clusterID = "dHdpbmJveC1sb2NhbC1vbg"

// A group's first assignment waits for no further members.
func (s *Server) settings() string {
	settings := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          strconv.Itoa(s.cfg.Node),
		"controller.quorum.voters":                         "1@" + s.controller,
		"listeners":                                        "PLAINTEXT://" + s.addr + ",CONTROLLER://" + s.controller,
		"advertised.listeners":                             "PLAINTEXT://" + s.addr,
		"controller.listener.names":                        "CONTROLLER",
		"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                                         filepath.ToSlash(filepath.Join(s.dir, "data")),
		"auto.create.topics.enable":                        "false",
		"offsets.topic.num.partitions":                     "4",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
		"group.min.session.timeout.ms":                     "1000",
	}
	if s.cfg.Join != "" {
		settings["process.roles"], settings["listeners"] = "broker", "PLAINTEXT://"+s.addr
	}
	maps.Copy(settings, s.cfg.Settings)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s=%s\n", name, settings[name])
	}
	return text.String()
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %s", startTimeout))
	defer cancel()
	err := s.process.Await(ctx, func() bool {
		return kafka.Ping(ctx, kafka.Config{Brokers: []string{s.addr}, RequestTimeout: time.Second}) == nil
	})
	if err != nil {
		return fmt.Errorf("start kafka: %w: %q", err, s.output)
	}
	return nil
}

func (s *Server) Addr() string { return s.addr }

func (s *Server) Controller() string { return s.controller }

func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Stop ends the process, by force after 20 s, and removes a temporary data folder. A second call does nothing.
func (s *Server) Stop() (err error) {
	if s.process != nil {
		_, err = s.process.Stop(stopTimeout)
	}
	err = errors.Join(err, s.lock.Unlock())
	if s.cfg.Dir == "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	if err != nil {
		return fmt.Errorf("stop kafka: %w", err)
	}
	return nil
}

func (s *Server) Kill() { _ = s.process.Kill() } // an error means that it has ended
