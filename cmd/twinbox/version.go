package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version says what was built: the module's version where it has one, the commit, and with which Go.
func version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "twinbox (unknown build)"
	}
	commit, changed := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = ", commit " + setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changed = " with changes"
		}
	}
	return fmt.Sprintf("twinbox %s%s%s, %s %s/%s", info.Main.Version, commit, changed, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}
