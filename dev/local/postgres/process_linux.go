package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func childrenOf(pid int) (found []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
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

// isAlive is false for a zombie, which may stay for ever without an init.
func isAlive(pid int) bool {
	state, _ := readStat(pid)
	return state != "" && state != "Z"
}

// isHalted includes a process that is gone.
func isHalted(pid int) bool {
	state, _ := readStat(pid)
	return state == "T" || !isAlive(pid)
}

// isServer compares working directories. Without access, the process may be the server.
func isServer(pid int, dir string) bool {
	works, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return true
	}
	data, err := os.Stat(dir)
	return err != nil || os.SameFile(works, data)
}

// readStat returns "" and 0 for no process. The command's name in parentheses may hold parentheses too.
func readStat(pid int) (state string, parent int) {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
