package observability

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/dns"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, into), file)
}

type composed struct {
	Services map[string]struct {
		Environment map[string]string
		Volumes     []string
		Healthcheck struct{ Test []string }
	}
}

func TestPrometheusAsksEachService(t *testing.T) {
	t.Parallel()
	cfg, err := config.LoadFile("prometheus/prometheus.yml", false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, []string{"/etc/prometheus/rules/*.yml"}, cfg.RuleFiles)
	ports := map[string]string{}
	for _, job := range cfg.ScrapeConfigs {
		require.Len(t, job.ServiceDiscoveryConfigs, 1)
		found := job.ServiceDiscoveryConfigs[0].(*dns.SDConfig)
		require.Equal(t, []string{job.JobName}, found.Names)
		require.Equal(t, "A", found.Type, "an address: an admin listener does not know the container's name")
		ports[job.JobName] = fmt.Sprint(found.Port)
	}
	added, err := filepath.Glob("../../*/compose.yml")
	require.NoError(t, err)
	for _, file := range append(added, "../../docker-compose.yml") {
		var compose composed
		readYAML(t, file, &compose)
		for name, service := range compose.Services {
			if addr := service.Environment["ADMIN_ADDR"]; addr != "" {
				require.Equal(t, addr, ":"+ports[name], "%s of %s", name, file)
			}
		}
	}
}

func TestContainersFindTheirFiles(t *testing.T) {
	t.Parallel()
	var compose composed
	readYAML(t, "compose.yml", &compose)
	for name, service := range compose.Services {
		require.NotEmpty(t, service.Healthcheck.Test, "%s: nobody would see that it cannot start", name)
		for _, volume := range service.Volumes {
			parts := strings.Split(volume, ":")
			require.Len(t, parts, 3, volume)
			_, err := os.Stat(filepath.Join("../..", parts[0]))
			require.NoError(t, err)
		}
	}
	var sources struct {
		Datasources []struct{ Name, Type, URL string }
	}
	readYAML(t, "grafana/datasources.yaml", &sources)
	for _, source := range sources.Datasources {
		require.Contains(t, source.URL, "http://"+source.Type+":", source.Name)
		require.Contains(t, compose.Services, source.Type)
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	readYAML(t, "grafana/dashboards.yaml", &providers)
	require.Equal(t, "/etc/grafana/dashboards", providers.Providers[0].Options.Path)
	for variable, value := range map[string]string{ // else Grafana asks hosts of the internet at each start
		"GF_PLUGINS_PREINSTALL_DISABLED": "true", "GF_NEWS_NEWS_FEED_ENABLED": "false",
		"GF_ANALYTICS_REPORTING_ENABLED": "false", "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
		"GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
	} {
		require.Equal(t, value, compose.Services["grafana"].Environment[variable], variable)
	}
}

func TestRunbooksExist(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	page, anchors := string(content), map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	for _, rule := range readRules(t) {
		anchor, is := strings.CutPrefix(rule.Annotations["runbook"], "docs/operations.md#")
		require.True(t, is, rule.Alert)
		require.True(t, anchors[anchor], "%s leads to #%s, which docs/operations.md does not have", rule.Alert, anchor)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
		require.Contains(t, page, "`"+rule.Alert+"`", "the page's table of alerts")
	}
}

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

// These are the rules of Grafana's own linter, which has no library.
func TestDashboardsAreComplete(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("dashboards/*.json")
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
