// Package contracttest lets tests compare code with the contracts in package api.
package contracttest

import (
	"testing"

	"gopkg.in/yaml.v3"

	"example.com/twinbox/api"
)

// ProblemStatuses returns the status that api/openapi.yaml gives each problem code.
func ProblemStatuses(t testing.TB) map[string]int {
	t.Helper()
	data, err := api.Files.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas struct {
				ProblemCode struct {
					Statuses map[string]int `yaml:"x-problem-status"`
				} `yaml:"ProblemCode"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	statuses := document.Components.Schemas.ProblemCode.Statuses
	if len(statuses) == 0 {
		t.Fatal("openapi.yaml has no x-problem-status")
	}
	return statuses
}
