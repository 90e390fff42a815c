package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// System is where the events of all services are.
type System struct {
	Brokers  []string  `json:"brokers"`
	Services []Service `json:"services"`
}

// Verify verifies one service after the other, each as its configuration asks for.
func (s System) Verify(ctx context.Context, configure func(Service) Config) (Report, error) {
	report := Report{}
	for _, service := range s.Services {
		verdict, err := Run(ctx, configure(service))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", service.Name, err)
		}
		report[service.Name] = verdict
	}
	return report, nil
}

// Report has the verdicts of one verification by the services' names.
type Report map[string]*Verdict

// All is a verdict on all services.
func (r Report) All() *Verdict {
	all := &Verdict{}
	for _, v := range r {
		if v.At.After(all.At) {
			all.At = v.At
		}
		all.Findings = slices.Concat(all.Findings, v.Findings)
		all.Unverifiable = slices.Concat(all.Unverifiable, v.Unverifiable)
	}
	return all
}

// ReportFile is the file with the last report. It names events and keys, so it is its owner's alone.
const ReportFile = "verify.json"

// WriteReport puts the verdicts in the place of the services' last ones in the folder. A reader gets all of the old
// file or all of the new one.
func WriteReport(dir string, r Report) error {
	all, _ := ReadReport(dir)
	if all == nil {
		all = Report{}
	}
	maps.Copy(all, r)
	content, err := json.Marshal(all)
	file := filepath.Join(dir, ReportFile)
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
	content, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return r, nil
}
