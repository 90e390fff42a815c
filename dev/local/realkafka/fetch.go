package realkafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"example.com/twinbox/dev/local/cache"
	"example.com/twinbox/dev/local/child"
)

// ErrNoJava and ErrNoMaven: [Start] needs Java and Maven.
var (
	ErrNoJava = errors.New("java 17 or newer is needed on PATH " +
		"(Debian: apt install openjdk-17-jre-headless, macOS: brew install openjdk)")
	ErrNoMaven = errors.New("mvn is needed on PATH to fetch Apache Kafka " +
		"(Debian: apt install maven, macOS: brew install maven)")
)

const minJava = 17

// Maven's own configuration names the repository.
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

// ensureJars names the folder after Maven's success: no interrupted fetch looks complete.
func ensureJars(ctx context.Context, cfg Config) (string, error) {
	jars, err := cache.Path(cfg.CacheDir, "kafka-"+Version)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(jars); err == nil {
		return jars, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", fmt.Errorf("find mvn: %w", ErrNoMaven)
	}
	dir := filepath.Dir(jars)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return "", fmt.Errorf("create cache folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	cfg.Progress("fetching Apache Kafka " + Version + " through Maven (once, about 45 MB)")
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), []byte(pom), 0o600); err != nil {
		return "", fmt.Errorf("write pom: %w", err)
	}
	mvn := exec.CommandContext(ctx, "mvn", "-B", "-q", copyDependencies, "-DincludeScope=runtime",
		"-DoutputDirectory="+filepath.Join(work, "jars"))
	mvn.Dir = work
	if err := run(mvn); err != nil {
		return "", fmt.Errorf("fetch kafka through maven: %w", err)
	}
	err = os.Rename(filepath.Join(work, "jars"), jars)
	if _, missing := os.Stat(jars); missing != nil {
		return "", fmt.Errorf("keep the jars: %w", err)
	}
	return jars, nil // a different process may have renamed its own first
}

func run(cmd *exec.Cmd) error {
	var output child.Tail
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %q", err, output.String())
	}
	return nil
}
