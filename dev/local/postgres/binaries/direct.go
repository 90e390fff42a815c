package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// registry is where npm's packages are: a mirror is named as npm itself would be told.
func registry(getenv func(string) string) string {
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if address := getenv(name); address != "" {
			return strings.TrimRight(address, "/")
		}
	}
	return "https://registry.npmjs.org"
}

// maxPackageBytes is more than any of the packages has.
const maxPackageBytes = 128 << 20

// fetchDirectly downloads npm's package from the registry without npm. A proxy is taken from HTTPS_PROXY. What arrives
// is checked like everything else, so the registry is not trusted with more than being there.
func fetchDirectly(ctx context.Context, registry string, b build, work, into string) error {
	name := path.Base(b.npm) + "-" + npmVersion + ".tgz"
	archive := filepath.Join(work, name)
	if err := download(ctx, registry+"/"+b.npm+"/-/"+name, archive); err != nil {
		return err
	}
	archive, err := only(work, "*.tgz", b.npmSum)
	if err != nil {
		return err
	}
	return unpackNPM(archive, into)
}

func download(ctx context.Context, address, file string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("download: %s answered %s", address, response.Status)
	}
	to, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := io.Copy(to, io.LimitReader(response.Body, maxPackageBytes)); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return nil
}
