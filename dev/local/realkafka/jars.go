package realkafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

const minJava = 17

// ErrNoJava and ErrNoMaven are returned by [Start] when what it needs is not installed.
var (
	ErrNoJava = errors.New("java 17 or newer is needed on PATH " +
		"(Debian: apt install openjdk-17-jre-headless, macOS: brew install openjdk)")
	ErrNoMaven = errors.New("mvn is needed on PATH to fetch Apache Kafka " +
		"(Debian: apt install maven, macOS: brew install maven)")
)

var javaVersion = regexp.MustCompile(`version "(\d+)`)

func findJava(ctx context.Context) (string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("find java: %w", ErrNoJava)
	}
	output, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ask java for its version: %w", err)
	}
	found := javaVersion.FindSubmatch(output)
	if found == nil {
		return "", fmt.Errorf("ask java for its version: %w: %s", ErrNoJava, tail(output))
	}
	if major, _ := strconv.Atoi(string(found[1])); major < minJava {
		return "", fmt.Errorf("java %d is too old: %w", major, ErrNoJava)
	}
	return java, nil
}

// pom asks for the server and everything it needs at run time, every version pinned. Maven's own configuration says
// from where.
const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>twinbox</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>` + Version + `</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// ensureJars returns the folder that holds the jars. A folder that exists is complete: it gets its name only when
// Maven has succeeded, so an interrupted fetch leaves nothing that looks finished, and two at once do not disturb each
// other.
func ensureJars(ctx context.Context, cfg Config) (string, error) {
	parent := cfg.CacheDir
	if parent == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache folder: %w", err)
		}
		parent = filepath.Join(cache, "twinbox")
	}
	jars := filepath.Join(parent, "kafka-"+Version)
	if _, err := os.Stat(jars); err == nil {
		return jars, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("find mvn: %w", ErrNoMaven)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	work, err := os.MkdirTemp(parent, "fetch-")
	if err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	cfg.Progress("fetching Apache Kafka " + Version + " through Maven (once, about 45 MB)")
	if err := fetch(ctx, mvn, work); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(work, "jars"), jars); err != nil {
		if _, statErr := os.Stat(jars); statErr != nil {
			return "", fmt.Errorf("keep the jars: %w", err)
		}
		// Another process was first.
	}
	return jars, nil
}

func fetch(ctx context.Context, mvn, work string) error {
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), []byte(pom), 0o600); err != nil {
		return fmt.Errorf("write pom: %w", err)
	}
	command := exec.CommandContext(ctx, mvn, "-B", "-q", copyDependencies, "-DincludeScope=runtime",
		"-DoutputDirectory="+filepath.Join(work, "jars"))
	command.Dir = work
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch kafka through maven: %w: %s", err, tail(output))
	}
	return nil
}
