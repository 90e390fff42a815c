// Package deploy_test checks the compose files and the Dockerfile against the code, without Docker. A folder may be
// missing.
package deploy_test

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

const root = "../.."

// load takes no variable from the environment.
func load(t *testing.T, added []string, env ...string) *types.Project {
	t.Helper()
	files := append([]string{filepath.Join(root, "docker-compose.yml")}, added...)
	options, err := cli.NewProjectOptions(files, cli.WithEnv(env))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err, files)
	return project
}

// compose loads the compose files without those that WITH adds.
func compose(t *testing.T, env ...string) *types.Project {
	t.Helper()
	own, err := filepath.Glob(root + "/internal/*/compose.yml")
	require.NoError(t, err)
	return load(t, own, env...)
}

func added(t *testing.T) []string {
	t.Helper()
	beside, err := filepath.Glob(root + "/*/compose.yml")
	require.NoError(t, err)
	below, err := filepath.Glob(root + "/*/*/compose.yml")
	require.NoError(t, err)
	return append(beside, below...)
}

func environ(service types.ServiceConfig) []string {
	var list []string
	for name, value := range service.Environment {
		list = append(list, name+"="+*value)
	}
	return list
}

const jobPrefix = "setup-"

func ours() map[string]eventing.Described {
	found := map[string]eventing.Described{}
	for _, s := range services.All() {
		found[s.Name], found[jobPrefix+s.Name] = s, s
	}
	return found
}

func TestCompose_FilesFitTogether(t *testing.T) {
	t.Parallel()
	for _, file := range added(t) {
		load(t, []string{file})
	}
	load(t, added(t))
}

// A loader refuses unknown variables only under its own prefixes. Here each variable must be one that the program
// reads.
func TestCompose_EnvironmentLoads(t *testing.T) {
	t.Parallel()
	project := compose(t, "TWINBOX_LOG_LEVEL=DEBUG", "TWINBOX_ADMIN_TOKEN=", "TWINBOX_SIGNUPS_PER_CLIENT=0")
	for name, s := range ours() {
		container := project.Services[name]
		_, err := s.Load(environ(container))
		require.NoError(t, err, name)
		var known []string
		for _, setting := range s.Unset().Variables {
			known = append(known, setting.Variable)
			if setting.Required {
				require.Contains(t, container.Environment, setting.Variable, name)
			}
		}
		for variable := range container.Environment {
			require.Contains(t, known, variable, name)
		}
	}
	one, other := project.Services["customer"].Environment, project.Services["notification"].Environment
	for _, variable := range []string{"VERIFICATION_SECRET", "KAFKA_BROKERS", "ENVIRONMENT"} {
		require.Equal(t, one[variable], other[variable], variable)
	}
}

// LOG_LEVEL=trace of another program would stop both services.
func TestCompose_TakesNothingFromTheShell(t *testing.T) {
	t.Parallel()
	quiet := load(t, added(t))
	stray := []string{"POSTGRES_PASSWORD=stray", "POSTGRES_USER=stray"}
	for name := range ours() {
		for variable := range quiet.Services[name].Environment {
			stray = append(stray, variable+"=stray")
		}
	}
	noisy := load(t, added(t), stray...)
	for name, service := range quiet.Services {
		require.Equal(t, service.Environment, noisy.Services[name].Environment, name)
	}
}

func TestCompose_Ports(t *testing.T) {
	t.Parallel()
	published := map[string]string{}
	for name, service := range load(t, added(t)).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s publishes on loopback only", name)
			require.Empty(t, published[port.Published], "port %s of %s", port.Published, name)
			published[port.Published] = name
		}
	}
	for _, s := range services.All() {
		for _, variable := range []string{"HTTP_ADDR", "ADMIN_ADDR"} {
			if _, port, found := strings.Cut(s.Unset().Value(variable), ":"); found {
				require.Equal(t, s.Name, published[port], "%s of %s", variable, s.Name)
			}
		}
	}
	moved := compose(t, "CUSTOMER_PORT=9080", "KAFKA_PORT=19999", "NOTIFICATION_ADMIN_PORT=0").Services
	require.Equal(t, "9080", moved["customer"].Ports[0].Published)
	require.Contains(t, *moved["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"], "localhost:19999",
		"a broker that moved must say so, or clients on the host are sent to the old port")
	require.Equal(t, "http://127.0.0.1:9080", *moved["notification"].Environment["PUBLIC_URL"],
		"the links in mails lead to where the API has moved")
	require.Equal(t, "0", moved["notification"].Ports[0].Published, "any free port: there may be two instances")
}

func TestCompose_Dependencies(t *testing.T) {
	t.Parallel()
	project := load(t, added(t))
	for name, service := range project.Services {
		for target, dependency := range service.DependsOn {
			if strings.HasPrefix(target, jobPrefix) {
				require.Equal(t, types.ServiceConditionCompletedSuccessfully, dependency.Condition, "%s on %s", name, target)
			} else {
				require.Equal(t, types.ServiceConditionHealthy, dependency.Condition, "%s on %s", name, target)
				require.NotNil(t, project.Services[target].HealthCheck, target)
			}
		}
	}
	for name := range ours() {
		want := []string{"setup-customer", "setup-notification"}
		if service, isJob := strings.CutPrefix(name, jobPrefix); isJob {
			want = []string{"setup-databases", "kafka"}
			if own := "setup-databases-" + service; project.Services[own].Name != "" { // it waits for the first one
				want[0] = own
			}
		}
		require.Subset(t, slices.Collect(maps.Keys(project.Services[name].DependsOn)), want, name)
	}
	require.Contains(t, project.Services["setup-databases"].DependsOn, "postgres")
}

func TestCompose_EachContainer(t *testing.T) {
	t.Parallel()
	built := map[string]string{}
	for name, c := range load(t, added(t)).Services {
		require.Equal(t, []string{"ALL"}, c.CapDrop, name)
		require.Contains(t, c.SecurityOpt, "no-new-privileges:true", name)
		require.NotEmpty(t, c.Logging.Options["max-size"], "%s: its log grows without end", name)
		require.Empty(t, c.ContainerName, "%s: a fixed name clashes with a second copy", name)
		require.Regexp(t, `:(v?[\d.]+[\w.-]*|local)$`, c.Image, "%s: a pinned image", name)
		isJob := strings.HasPrefix(name, jobPrefix)
		require.Equal(t, map[bool]string{true: "no", false: "unless-stopped"}[isJob], c.Restart, name)
		if check := c.HealthCheck; check != nil && !check.Disable { // each is a process; a start is noticed within a second
			require.GreaterOrEqual(t, time.Duration(*check.Interval), 30*time.Second, name)
			require.Equal(t, time.Second, time.Duration(*check.StartInterval), name)
		}
		if c.Build != nil {
			require.Empty(t, built[c.Image], "%s builds %s again: two images, and a container made anew", name, c.Image)
			built[c.Image] = name
			require.FileExists(t, filepath.Join(root, *c.Build.Args["PROGRAM"], "main.go"))
			require.True(t, c.ReadOnly, name)
			require.Nil(t, c.HealthCheck, "%s: the Dockerfile has it", name)
			require.Empty(t, c.Hostname, "%s: instances have ids of their own, made of their names", name)
			require.NotContains(t, c.Environment, "KAFKA_INSTANCE_ID", name)
		} else if isJob && strings.HasSuffix(c.Image, ":local") {
			require.Equal(t, types.PullPolicyNever, c.PullPolicy, "%s: no registry has the image", name)
		}
	}
	for _, s := range services.All() {
		container := compose(t).Services[s.Name]
		require.Equal(t, s.Name, built[container.Image])
		instance, err := s.Load(environ(container))
		require.NoError(t, err)
		drain, err := time.ParseDuration(instance.Value("SHUTDOWN_TIMEOUT"))
		require.NoError(t, err)
		require.Greater(t, time.Duration(*container.StopGracePeriod), drain, "%s: the kill must not cut the drain", s.Name)
	}
}

// Both may run on one engine.
func TestCompose_TwoProjectsShareNoImage(t *testing.T) {
	t.Parallel()
	second := load(t, added(t), "COMPOSE_PROJECT_NAME=second")
	for name, c := range load(t, added(t)).Services {
		if c.Build != nil {
			require.Regexp(t, `^[a-z-]+/`+name+`:local$`, c.Image)
			require.Equal(t, "second/"+name+":local", second.Services[name].Image)
		}
	}
}

func TestCompose_Volumes(t *testing.T) {
	t.Parallel()
	project := load(t, added(t))
	mounts := map[string]string{}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeVolume {
				mounts[volume.Source] = name + ":" + volume.Target
				continue
			}
			require.True(t, volume.ReadOnly, "%s: a bind mount is for reading", name)
			_, err := os.Stat(volume.Source)
			require.NoError(t, err, name)
		}
	}
	require.Len(t, project.Volumes, len(mounts), "every volume declared is used")
	require.Subset(t, mounts, map[string]string{
		"postgres": "postgres:/var/lib/postgresql",
		"kafka":    "kafka:" + *project.Services["kafka"].Environment["KAFKA_LOG_DIRS"],
		"mailpit":  "mailpit:" + path.Dir(*project.Services["mailpit"].Environment["MP_DATABASE"]),
	})
	// Each container would leave a volume of the image behind.
	require.Subset(t, project.Services["kafka"].Tmpfs, []string{"/etc/kafka/secrets", "/mnt/shared/config"})
	require.Contains(t, project.Services["setup-databases"].Tmpfs, "/var/lib/postgresql")
}
