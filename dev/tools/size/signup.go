package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const programFolder = "/dev/tools/size/onesignup"

// oneSignup builds onesignup with coverage of the product, runs it, and counts the functions that each of its signups
// ran, and their files. Background work falls into some of them and not into others.
func oneSignup(ctx context.Context, root string) (figures []figure, err error) {
	dir, err := os.MkdirTemp("", "size-")
	if err != nil {
		return nil, fmt.Errorf("measure a signup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // root's database runs as another account, which has to pass through
		return nil, fmt.Errorf("measure a signup: %w", err)
	}
	module, err := output(ctx, root, "go", "list", "-m", "-f", "{{.Path}}")
	if err != nil {
		return nil, err
	}
	own, _, _ := strings.Cut(module, "\n")   // the first module of the workspace is the product
	covered := []string{own + programFolder} // the program itself carries what counts
	for _, r := range rings {
		for _, folder := range r.folders {
			if r.product {
				covered = append(covered, own+"/"+folder+"/...")
			}
		}
	}
	program := filepath.Join(dir, "onesignup")
	if _, err := output(ctx, root, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(covered, ","),
		"-o", program, "."+programFolder); err != nil {
		return nil, err
	}
	counters, state := filepath.Join(dir, "counters"), filepath.Join(dir, "state")
	if err := os.Mkdir(counters, 0o755); err != nil {
		return nil, fmt.Errorf("measure a signup: %w", err)
	}
	if _, err := output(ctx, root, program, state, counters); err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(counters, "*"))
	if err != nil || len(folders) == 0 {
		return nil, fmt.Errorf("measure a signup: there are no counters: %w", err)
	}
	var lists []string
	for _, folder := range folders {
		listed, err := output(ctx, root, "go", "tool", "covdata", "func", "-i", folder)
		if err != nil {
			return nil, err
		}
		lists = append(lists, listed)
	}
	functions, files := count(lists...)
	return []figure{
		{name: "functions that each signup runs", value: functions, goal: 240},
		{name: "files that each signup runs", value: files, goal: 75},
	}, nil
}

// count counts the functions of the product that ran in all of what covdata lists, and the files that they are in.
func count(lists ...string) (functions, files int) {
	ran, seen := map[string]int{}, map[string]bool{}
	for _, listed := range lists {
		for line := range strings.Lines(listed) {
			fields := strings.Fields(line)
			if len(fields) != 3 || fields[0] == "total" || fields[2] == "0.0%" || strings.Contains(fields[0], programFolder) {
				continue
			}
			if ran[fields[0]]++; ran[fields[0]] == len(lists) {
				functions++
				name, _, _ := strings.Cut(fields[0], ".go:")
				seen[name] = true
			}
		}
	}
	return functions, len(seen)
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, said.String())
	}
	return string(out), nil
}
