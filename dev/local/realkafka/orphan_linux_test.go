package realkafka

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// TestHelperProcess is the process that the next test kills.
func TestHelperProcess(t *testing.T) {
	dir := os.Getenv("REALKAFKA_HELPER_DIR")
	if dir == "" {
		t.Skip("run by TestKafkaEndsWithAKilledParent")
	}
	server, err := Start(context.Background(), Config{Dir: dir})
	require.NoError(t, err)
	fmt.Println("\npid", server.process.PID())
	<-server.Done()
}

func TestKafkaEndsWithAKilledParent(t *testing.T) {
	if os.Getenv("TWINBOX_TEST_KAFKA") != "real" {
		t.Skip("TWINBOX_TEST_KAFKA is not \"real\"")
	}
	parent := exec.Command(os.Args[0], "-test.run", "^TestHelperProcess$")
	parent.Env = append(os.Environ(), "REALKAFKA_HELPER_DIR="+filepath.Join(t.TempDir(), "kafka"))
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var pid int
	for lines := bufio.NewScanner(output); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "pid %d", &pid)
	}
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // killed
	require.NotZero(t, pid)
	testkit.Until(t, func() bool { return !isRunning(pid) })
}

// isRunning is false for a zombie.
func isRunning(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
