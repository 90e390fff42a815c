package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"example.com/twinbox/internal/services"
)

const observability = root + "/deploy/observability"

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(observability, file))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, into), file)
}

// Prometheus asks each service's own instances at the port where the container has its metrics.
func TestObservability_PrometheusAsksEachService(t *testing.T) {
	t.Parallel()
	var cfg struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			Job string `yaml:"job_name"`
			DNS []struct {
				Names []string
				Type  string
				Port  string
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "prometheus/prometheus.yml", &cfg)
	project := compose(t)
	jobs := map[string]string{}
	for _, job := range cfg.ScrapeConfigs {
		require.Len(t, job.DNS, 1)
		require.Equal(t, []string{job.Job}, job.DNS[0].Names)
		require.Equal(t, "A", job.DNS[0].Type, "an address: an admin listener does not know the container's name")
		jobs[job.Job] = job.DNS[0].Port
	}
	want := map[string]string{}
	for name, s := range project.Services {
		if addr := s.Environment["ADMIN_ADDR"]; addr != nil && len(s.Ports) > 0 { // a job has the setting and no listener
			_, want[name], _ = strings.Cut(*addr, ":")
		}
	}
	require.Equal(t, want, jobs)
	for _, s := range services.All() {
		require.Contains(t, jobs, s.Name)
	}
	require.Equal(t, []string{"/etc/prometheus/rules/*.yml"}, cfg.RuleFiles)
}

// The containers find their files where they look, and where they look for each other is where they are.
func TestObservability_ContainersFindTheirFiles(t *testing.T) {
	t.Parallel()
	project := compose(t)
	mounted := map[string]string{}
	for _, name := range []string{"prometheus", "grafana", "tempo"} {
		service := project.Services[name]
		require.Equal(t, []string{"observability"}, service.Profiles, name)
		for _, volume := range service.Volumes {
			path, err := filepath.Rel(project.WorkingDir, volume.Source)
			require.NoError(t, err)
			mounted[name+":"+volume.Target] = path
		}
	}
	require.Equal(t, map[string]string{
		"prometheus:/etc/prometheus/prometheus.yml":                      "deploy/observability/prometheus/prometheus.yml",
		"prometheus:/etc/prometheus/rules":                               "deploy/observability/rules",
		"grafana:/etc/grafana/provisioning/datasources/datasources.yaml": "deploy/observability/grafana/datasources.yaml",
		"grafana:/etc/grafana/provisioning/dashboards/dashboards.yaml":   "deploy/observability/grafana/dashboards.yaml",
		"grafana:/etc/grafana/dashboards":                                "deploy/observability/dashboards",
		"tempo:/etc/tempo.yaml":                                          "deploy/observability/tempo/tempo.yaml",
	}, mounted)
	var sources struct {
		Datasources []struct{ Name, Type, URL string }
	}
	readYAML(t, "grafana/datasources.yaml", &sources)
	for _, source := range sources.Datasources {
		require.Contains(t, source.URL, "http://"+source.Type+":", source.Name)
		require.Contains(t, project.Services, source.Type)
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, "grafana/dashboards.yaml", &providers)
	require.Equal(t, "/etc/grafana/dashboards", providers.Providers[0].Options.Path)
}

// Nothing that is shown here comes from the internet, and nothing is told to it. Grafana fetches plugins at each start
// unless it is told not to.
func TestObservability_GrafanaAsksNoOtherHost(t *testing.T) {
	t.Parallel()
	environment := compose(t).Services["grafana"].Environment
	for variable, value := range map[string]string{
		"GF_PLUGINS_PREINSTALL_DISABLED": "true", "GF_NEWS_NEWS_FEED_ENABLED": "false",
		"GF_ANALYTICS_REPORTING_ENABLED": "false", "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
		"GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
	} {
		require.NotNil(t, environment[variable], variable)
		require.Equal(t, value, *environment[variable], variable)
	}
}

// Each alert leads to a heading of the operations page.
func TestObservability_RunbooksExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(root + "/docs/operations.md")
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(page), -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	readYAML(t, "rules/twinbox.yml", &rules)
	require.NotEmpty(t, rules.Groups)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			anchor, is := strings.CutPrefix(rule.Annotations["runbook"], "docs/operations.md#")
			require.True(t, is, rule.Alert)
			require.True(t, anchors[anchor], "%s leads to #%s, which docs/operations.md does not have", rule.Alert, anchor)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
			require.Contains(t, string(page), "`"+rule.Alert+"`", "the page's table of alerts")
		}
	}
}

// panel is what every panel of a dashboard must have.
type panel struct {
	ID          int
	Title, Type string
	Description string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Expr, RefID, LegendFormat string
		Datasource                struct{ UID string }
	}
}

// The rules of Grafana's own linter, which cannot be had as a library.
func TestObservability_Dashboards(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(observability + "/dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var page struct {
			ID                      *int
			UID, Title, Description string
			SchemaVersion           int
			Tags                    []string
			Templating              struct{ List []struct{ Name, Type string } }
			Panels                  []panel
		}
		require.NoError(t, json.Unmarshal(content, &page), file)
		require.Nil(t, page.ID, "%s: an id is one database's", file)
		require.Equal(t, "twinbox-"+strings.TrimSuffix(filepath.Base(file), ".json"), page.UID)
		require.NotEmpty(t, page.Title, file)
		require.NotEmpty(t, page.Description, file)
		require.Equal(t, []string{"twinbox"}, page.Tags)
		require.Equal(t, 39, page.SchemaVersion)
		var variables []string
		for _, variable := range page.Templating.List {
			variables = append(variables, variable.Name)
		}
		require.Equal(t, []string{"datasource", "job", "instance"}, variables)
		require.NotEmpty(t, page.Panels)
		seen, cells := map[string]bool{}, map[[2]int]string{}
		for i, p := range page.Panels {
			require.Equal(t, i+1, p.ID, p.Title)
			require.False(t, seen[p.Title], "%s: %s twice", file, p.Title)
			seen[p.Title] = true
			p.requireComplete(t)
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					require.Empty(t, cells[[2]int{x, y}], "%s lies on another panel", p.Title)
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

func (p panel) requireComplete(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Description, p.Title)
	require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
	require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
	require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
	require.Contains(t, []string{"timeseries", "stat"}, p.Type, p.Title)
	require.NotEmpty(t, p.Targets, p.Title)
	for _, target := range p.Targets {
		require.NotEmpty(t, target.Expr, p.Title)
		require.NotEmpty(t, target.RefID, p.Title)
		require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
		require.Contains(t, target.LegendFormat, "{{", "%s: which series is which", p.Title)
	}
}
