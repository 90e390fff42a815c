package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Superuser is the role that owns a server started here.
const Superuser = "postgres"

// initialised reports whether dir holds a cluster already.
func initialised(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "PG_VERSION"))
	return err == nil
}

// initialise makes the cluster beside its place and moves it there. initdb writes PG_VERSION first, so one that was
// killed half-way would otherwise look like a cluster for ever.
func initialise(ctx context.Context, cfg Config, binDir string, id identity) (err error) {
	making := cfg.Dir + ".initdb"
	if err := os.RemoveAll(making); err != nil {
		return fmt.Errorf("clear unfinished cluster: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(making))
		}
	}()
	if err := makeDir(making, id); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	args := []string{
		"-D", making, "-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
	}
	c, err := start(filepath.Join(binDir, "initdb"), args, id.attributes(syscall.SIGKILL), cfg.Log)
	if err != nil {
		return fmt.Errorf("start initdb: %w", err)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		err = errors.Join(context.Cause(ctx), c.signal(syscall.SIGKILL))
		<-c.done
		return fmt.Errorf("run initdb: %w", err)
	}
	if c.err != nil {
		return fmt.Errorf("run initdb: %w: %w: %s", ErrExited, c.err, c.tail)
	}
	if err := os.Rename(making, cfg.Dir); err != nil {
		return fmt.Errorf("put data directory in place: %w", err)
	}
	return nil
}

func makeDir(dir string, id identity) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return give(dir, id)
}

func give(dir string, id identity) error {
	if !id.chown {
		return nil
	}
	return os.Chown(dir, id.uid, id.gid)
}
