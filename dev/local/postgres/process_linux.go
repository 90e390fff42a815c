package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) (found []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, entry := range entries {
		candidate, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		if state, parent := readStat(candidate); parent == pid && state != "Z" {
			found = append(found, candidate)
		}
	}
	return found
}

// isAlive reports whether the process runs. A zombie does not: in a container without an init it may stay for ever.
func isAlive(pid int) bool {
	state, _ := readStat(pid)
	return state != "" && state != "Z"
}

// isHalted reports whether the process executes nothing: it was stopped, or it is gone.
func isHalted(pid int) bool {
	state, _ := readStat(pid)
	return state == "T" || !isAlive(pid)
}

// isServer reports whether the process may be the server of the data directory, which is a server's working directory.
// Without access to it, it may be.
func isServer(pid int, dir string) bool {
	works, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return true
	}
	data, err := os.Stat(dir)
	return err != nil || os.SameFile(works, data)
}

// readStat returns a process's state and parent, or "" and 0. They follow the command's name in parentheses, which may
// hold any character, parentheses too.
func readStat(pid int) (state string, parent int) {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
