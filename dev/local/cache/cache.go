// Package cache names the folder of fetched programs.
package cache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Path returns a path in dir. Default: "twinbox" in the user's cache folder, in /var/cache for root, whose database may
// run as an account that cannot enter root's home. All checkouts share it.
func Path(dir, name string) (path string, err error) {
	if dir == "" && os.Geteuid() == 0 {
		dir = "/var/cache/twinbox"
	} else if dir == "" {
		if dir, err = os.UserCacheDir(); err != nil {
			return "", fmt.Errorf("find a cache folder: %w", err)
		}
		dir = filepath.Join(dir, "twinbox")
	}
	return filepath.Join(dir, name), nil
}
