package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// System has the services and their broker.
type System struct {
	Brokers  []string  `json:"brokers"`
	Services []Service `json:"services"`
}

// Verify verifies one service after the other. With an error, the report has the services that have a verdict.
func (s System) Verify(ctx context.Context, configure func(Service) Config) (report Report, err error) {
	report = Report{}
	for _, service := range s.Services {
		verdict, failed := Run(ctx, configure(service))
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", service.Name, failed))
			continue
		}
		report[service.Name] = verdict
	}
	return report, err
}

// Report has the verdicts of one verification by the services' names.
type Report map[string]*Verdict

// All joins the verdicts of all services by their names, as of the earliest.
func (r Report) All() *Verdict {
	all := &Verdict{}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		v := r[name]
		if all.At.IsZero() || v.At.Before(all.At) {
			all.At = v.At
		}
		all.Findings = slices.Concat(all.Findings, v.Findings)
		all.Unverifiable = slices.Concat(all.Unverifiable, v.Unverifiable)
	}
	return all
}

// reportFile names events and keys, so only its owner may read it.
const reportFile = "verify.json"

// WriteReport atomically replaces the services' last verdicts in the folder, which it makes if necessary.
func WriteReport(dir string, r Report) error {
	all, _ := ReadReport(dir)
	if all == nil {
		all = Report{}
	}
	maps.Copy(all, r)
	content, err := json.Marshal(all)
	file := filepath.Join(dir, reportFile)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(file+".new", content, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("store the report: %w", err)
	}
	return nil
}

// ReadReport reads the last report in the folder. If there is none, the error is [os.ErrNotExist].
func ReadReport(dir string) (r Report, err error) {
	content, err := os.ReadFile(filepath.Join(dir, reportFile))
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return r, nil
}
