package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"example.com/twinbox/dev/local/child"
)

// foreign matches variables that name a different server or language.
var foreign = regexp.MustCompile(`^(PG|LC_|LANG)`)

func start(path string, args []string, id identity, death syscall.Signal, log io.Writer) (
	*child.Process, *child.Tail, error,
) {
	tail := &child.Tail{}
	cmd := exec.Command(path, args...)
	cmd.Dir = "/" // the server's user may not enter the working directory
	cmd.Stdout = io.MultiWriter(tail, log)
	cmd.Stderr = cmd.Stdout
	cmd.Env = append(slices.DeleteFunc(cmd.Environ(), foreign.MatchString), "LC_ALL=C")
	cmd.SysProcAttr = id.attributes()
	process, err := child.Start(cmd, death)
	return process, tail, err
}

// initialise moves a complete cluster to its place: initdb writes PG_VERSION first, so a half cluster would look
// complete.
func initialise(ctx context.Context, cfg Config, id identity) (err error) {
	if _, err := os.Stat(filepath.Join(cfg.Dir, "PG_VERSION")); err == nil {
		return nil
	}
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
	initdb, tail, err := start(filepath.Join(cfg.binDir, "initdb"), []string{
		"-D", making, "-U", Superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
	}, id, syscall.SIGKILL, cfg.Log)
	if err != nil {
		return fmt.Errorf("start initdb: %w", err)
	}
	ctx, cancel := timeout(ctx, "initdb", startTimeout)
	defer cancel()
	select {
	case <-initdb.Done():
	case <-ctx.Done():
		return fmt.Errorf("run initdb: %w", errors.Join(context.Cause(ctx), initdb.Kill()))
	}
	if err := initdb.Err(); err != nil {
		return fmt.Errorf("run initdb: %w: %s", err, tail)
	}
	if err := os.Rename(making, cfg.Dir); err != nil {
		return fmt.Errorf("put data directory in place: %w", err)
	}
	return nil
}

func makeDir(dir string, id identity) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil && id.chown {
		err = os.Chown(dir, id.uid, id.gid)
	}
	return err
}
