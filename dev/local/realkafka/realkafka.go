// Package realkafka runs a real Apache Kafka on this machine, without Docker: one KRaft node, broker and controller in
// one Java process, its jars fetched through Maven into the user's cache on first use.
//
// It is for tests and for trying things by hand (`go run ./dev/cmd/devstack kafka`). It needs Java 17 or newer, and mvn
// for the first start alone.
package realkafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"example.com/twinbox/dev/local/filelock"
	"example.com/twinbox/internal/kafka"
)

// Version is the release of Apache Kafka that runs.
const Version = "4.3.1"

// Config says where the node listens and keeps its data.
type Config struct {
	// Addr is host:port of the broker; port 0 takes a free one. Default 127.0.0.1:0.
	Addr string
	// Dir keeps the data, the log of the process and its settings. "" is a temporary folder that Stop removes.
	Dir string
	// CacheDir is where the jars are kept. Default: a folder in the user's cache.
	CacheDir string
	// Node is the node's number. Default 1.
	Node int
	// Join is the [Server.Controller] of another node. This one is a broker of its cluster.
	Join string
	// Settings are broker settings that win over the package's own.
	Settings map[string]string
	// Progress is told what takes long, in words for a person. Default: nothing.
	Progress func(string)
}

// Server is a running Kafka.
type Server struct {
	cfg        Config
	addr       string
	controller string
	dir        string
	temporary  bool
	lock       *filelock.Lock // of the folder, until Stop
	process    *process
}

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
)

// Start fetches the jars if they are not there, prepares the data folder if it is new, starts the process and waits
// until it answers. If it fails, nothing is left running. The process ends with this one, even when this one is killed
// (on Linux).
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	java, err := findJava(ctx)
	if err != nil {
		return nil, err
	}
	jars, err := ensureJars(ctx, cfg)
	if err != nil {
		return nil, err
	}
	cfg.Node = max(cfg.Node, 1)
	s := &Server{cfg: cfg, controller: cfg.Join, dir: cfg.Dir}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "kafka-"); err != nil {
			return nil, fmt.Errorf("create data folder: %w", err)
		}
		s.temporary = true
	}
	if s.lock, err = lockFolder(s.dir); err != nil {
		return nil, err
	}
	if err := s.launch(ctx, cfg, java, jars); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// lockFolder keeps the folder to one process at a time. make reset looks at the same lock.
func lockFolder(dir string) (*filelock.Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	lock, err := filelock.Take(filepath.Join(dir, "lock"))
	if held, is := errors.AsType[*filelock.HeldError](err); is {
		return nil, fmt.Errorf("kafka already runs on %s (process %d): stop it, or take another folder", dir, held.PID)
	}
	return lock, err
}

func (s *Server) launch(ctx context.Context, cfg Config, java, jars string) error {
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("resolve data folder: %w", err)
	}
	s.dir = dir
	if s.addr, err = pickAddr(ctx, cfg.Addr); err != nil {
		return err
	}
	if cfg.Join == "" {
		if s.controller, err = pickAddr(ctx, "127.0.0.1:0"); err != nil {
			return err
		}
	}
	if err := s.writeSettings(); err != nil {
		return err
	}
	classes := filepath.Join(jars, "*")
	if err := s.format(ctx, java, classes); err != nil {
		return err
	}
	cfg.Progress("starting Apache Kafka " + Version)
	s.process, err = startProcess(s.logFile(), java, "-Xmx512m", "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes, "kafka.Kafka", s.settingsFile())
	if err != nil {
		return fmt.Errorf("start kafka: %w", err)
	}
	return s.awaitReady(ctx)
}

func (s *Server) settingsFile() string { return filepath.Join(s.dir, "server.properties") }
func (s *Server) logFile() string      { return filepath.Join(s.dir, "kafka.log") }

// format prepares a new data folder. It is a JVM of its own, so it is skipped when the folder is prepared already.
func (s *Server) format(ctx context.Context, java, classes string) error {
	if _, err := os.Stat(filepath.Join(s.dir, "data", "meta.properties")); err == nil {
		return nil
	}
	command := exec.CommandContext(ctx, java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes, "kafka.tools.StorageTool", "format",
		"-t", clusterID, "-c", s.settingsFile())
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("format kafka's data folder: %w: %s", err, tail(output))
	}
	return nil
}

// awaitReady asks over the protocol until the broker answers.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %s", startTimeout))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if kafka.Ping(ctx, kafka.Config{Brokers: []string{s.addr}, RequestTimeout: time.Second}) == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-s.process.done:
			output, _ := os.ReadFile(s.logFile())
			return fmt.Errorf("start kafka: process ended: %s", tail(output))
		case <-ctx.Done():
			return fmt.Errorf("start kafka: %w", context.Cause(ctx))
		}
	}
}

// Addr returns host:port of the broker.
func (s *Server) Addr() string { return s.addr }

// Controller returns host:port of the cluster's controller, for nodes that join.
func (s *Server) Controller() string { return s.controller }

// Restart starts a server that was killed once more, on its address and its data. The data folder must be the caller's.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	if err := s.Stop(); err != nil {
		return nil, err
	}
	cfg := s.cfg
	cfg.Addr = s.addr
	return Start(ctx, cfg)
}

// Done is closed when the process has ended, for any reason.
func (s *Server) Done() <-chan struct{} { return s.process.done }

// Stop ends the process, by force if it does not go within 20 s, and removes a temporary data folder. Calling it again
// does nothing.
func (s *Server) Stop() error {
	if s.process != nil {
		s.process.stop(stopTimeout)
	}
	if s.lock != nil {
		if err := s.lock.Release(); err != nil {
			return fmt.Errorf("release data folder: %w", err)
		}
		s.lock = nil
	}
	if s.temporary {
		if err := os.RemoveAll(s.dir); err != nil {
			return fmt.Errorf("remove data folder: %w", err)
		}
	}
	return nil
}

// Kill ends the process as a crash would.
func (s *Server) Kill() { s.process.kill() }

// tail keeps the end of a program's output, where the reason usually stands.
func tail(output []byte) string {
	const limit = 2000
	if len(output) > limit {
		output = output[len(output)-limit:]
	}
	return strconv.QuoteToGraphic(string(output))
}
