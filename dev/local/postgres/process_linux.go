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
func childrenOf(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	var found []int
	for _, path := range stats {
		state, parent, ok := readStat(path)
		if !ok || state == "Z" || parent != pid {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			found = append(found, child)
		}
	}
	return found
}

// alive reports whether the process runs. A zombie does not: in a container without an init it may stay for ever.
func alive(pid int) bool {
	state, _, ok := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return ok && state != "Z"
}

// halted reports whether the process does nothing more: it was stopped, or it is gone.
func halted(pid int) bool {
	state, _, ok := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return !ok || state == "T" || state == "Z"
}

// serves reports whether the process may be the server of the data directory, in which a server works. Where that
// cannot be seen it may be.
func serves(pid int, dir string) bool {
	works, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return true
	}
	data, err := os.Stat(dir)
	return err != nil || os.SameFile(works, data)
}

// readStat takes the state and the parent out of a stat file. The command's name stands in parentheses before them
// and may hold anything, parentheses too.
func readStat(path string) (state string, parent int, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", 0, false
	}
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 2 {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0], parent, err == nil
}
