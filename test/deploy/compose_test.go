// Package deploy_test checks docker-compose.yml and Dockerfile against the code, without Docker: otherwise the first
// run of `make up` would find it.
package deploy_test

import (
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

	examples "example.com/twinbox/examples/services"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

const root = "../.."

// compose loads docker-compose.yml with the variables given and nothing from the environment.
func compose(t *testing.T, env ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")},
		cli.WithEnv(env), cli.WithProfiles([]string{"*"}))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

// environ is what the container of a service finds in its environment.
func environ(service types.ServiceConfig) []string {
	var list []string
	for name, value := range service.Environment {
		if value != nil {
			list = append(list, name+"="+*value)
		}
	}
	return list
}

// ours are the containers whose image is built here, with the service that each of their commands belongs to.
func ours(project *types.Project) map[string]eventing.Described {
	found := map[string]eventing.Described{}
	for name, container := range project.Services {
		for _, s := range all() {
			if container.Image == "twinbox/"+s.Name+":local" {
				found[name] = s
			}
		}
	}
	return found
}

// all are the services that have containers: the project's own, and those that a profile adds.
func all() []eventing.Described {
	all := services.All()
	all = append(all, examples.All()...)
	return all
}

// names are theirs.
func names() []string {
	var names []string
	for _, s := range all() {
		names = append(names, s.Name)
	}
	return names
}

func TestCompose_EnvironmentLoads(t *testing.T) {
	t.Parallel()
	project := compose(t)
	require.Len(t, ours(project), 3*len(all()), "each service, with migrate and topics")
	for name, s := range ours(project) {
		_, err := s.Load(environ(project.Services[name]))
		require.NoError(t, err, name)
	}
}

// A loader refuses unknown variables only under its own prefixes. Here every variable must be one that is read.
func TestCompose_SetsOnlyVariablesThatAreRead(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for name, s := range ours(project) {
		var known []string
		for _, setting := range s.Unset().Variables() {
			known = append(known, setting.Variable)
			if setting.Required {
				require.Contains(t, project.Services[name].Environment, setting.Variable, name)
			}
		}
		for variable := range project.Services[name].Environment {
			require.Contains(t, known, variable, name)
		}
	}
}

func TestCompose_ServicesShareSecretAndBroker(t *testing.T) {
	t.Parallel()
	project := compose(t)
	one, other := project.Services["customer"].Environment, project.Services["notification"].Environment
	for _, variable := range []string{"VERIFICATION_SECRET", "KAFKA_BROKERS", "ENVIRONMENT"} {
		require.Equal(t, one[variable], other[variable], variable)
	}
	require.NotEqual(t, one["DATABASE_URL"], other["DATABASE_URL"])
}

// A replica's instance id is made of its container's name: a name that all replicas share would have them throw each
// other out of their consumer groups.
func TestCompose_ReplicasHaveInstanceIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for name := range ours(project) {
		require.Empty(t, project.Services[name].Hostname, name)
		require.NotContains(t, project.Services[name].Environment, "KAFKA_INSTANCE_ID", name)
	}
}

func TestCompose_Ports(t *testing.T) {
	t.Parallel()
	project := compose(t)
	published := map[string]string{}
	for name, service := range project.Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s publishes on loopback only", name)
			require.Empty(t, published[port.Published], "port %s of %s", port.Published, name)
			published[port.Published] = name
		}
		require.Empty(t, service.ContainerName, "%s: a fixed name clashes with a second copy", name)
	}
	for _, s := range all() { // where make run has them
		for _, variable := range []string{"HTTP_ADDR", "ADMIN_ADDR"} {
			if _, port, found := strings.Cut(s.Unset().Value(variable), ":"); found {
				require.Equal(t, s.Name, published[port], "%s of %s", variable, s.Name)
			}
		}
	}
	require.Equal(t, "mailpit", published["8025"])
	require.Equal(t, "kafka", published["9092"])

	moved := compose(t, "CUSTOMER_PORT=9080", "KAFKA_PORT=19999", "POSTGRES_PORT=15432", "MAILBOX_PORT=18025")
	require.Equal(t, "mailpit", published["1025"], "a Notification that is run by hand sends there")
	require.Equal(t, "0", compose(t, "NOTIFICATION_ADMIN_PORT=0").Services["notification"].Ports[0].Published,
		"any free port, so that there may be two instances")
	require.Equal(t, "9080", moved.Services["customer"].Ports[0].Published)
	require.Contains(t, *moved.Services["kafka"].Environment["KAFKA_ADVERTISED_LISTENERS"], "localhost:19999",
		"a broker that moved must say so, or clients on the host are sent to the old port")
	require.Equal(t, "http://127.0.0.1:9080", *moved.Services["notification"].Environment["PUBLIC_URL"],
		"the links in mails lead to where the API has moved")
	for project, want := range map[*types.Project]string{
		project: "http://127.0.0.1:8080",
		compose(t, "TWINBOX_PUBLIC_URL=https://x.org", "CUSTOMER_PORT=9080"): "https://x.org",
	} {
		require.Equal(t, want, *project.Services["notification"].Environment["PUBLIC_URL"])
	}
}

func TestCompose_DependenciesAreConditions(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for name, service := range project.Services {
		for target, dependency := range service.DependsOn {
			require.Contains(t, project.Services, target)
			switch dependency.Condition {
			case types.ServiceConditionHealthy:
				require.True(t, hasHealthcheck(project.Services[target]), "%s waits for the health of %s", name, target)
			case types.ServiceConditionCompletedSuccessfully:
				require.Equal(t, "no", project.Services[target].Restart, "%s waits for the end of %s", name, target)
			default:
				require.Fail(t, "depends_on without a condition that means ready", "%s on %s", name, target)
			}
		}
	}
	needs := []string{"postgres", "kafka"}
	for _, name := range services.Names() {
		needs = append(needs, name+"-migrate", name+"-topics")
	}
	for _, name := range services.Names() {
		require.True(t, hasHealthcheck(project.Services[name]), name)
		require.Subset(t, waitsFor(project, name, nil), needs, name)
	}
	for _, s := range examples.All() {
		require.True(t, hasHealthcheck(project.Services[s.Name]), s.Name)
		require.Subset(t, waitsFor(project, s.Name, nil),
			[]string{"postgres", "kafka", s.Name + "-migrate", s.Name + "-topics"}, s.Name)
		for _, container := range []string{s.Name, s.Name + "-migrate", s.Name + "-topics"} {
			require.Equal(t, []string{"examples"}, project.Services[container].Profiles, container)
		}
	}
}

func hasHealthcheck(service types.ServiceConfig) bool {
	return service.HealthCheck != nil && !service.HealthCheck.Disable && len(service.HealthCheck.Test) > 1
}

// waitsFor lists everything that must be there before the service starts.
func waitsFor(project *types.Project, name string, seen []string) []string {
	for target := range project.Services[name].DependsOn {
		if !slices.Contains(seen, target) {
			seen = waitsFor(project, target, append(seen, target))
		}
	}
	return seen
}

// A shell has variables of its own. None of these names may reach a service: LOG_LEVEL=trace of some other program
// would stop both.
func TestCompose_TakesNothingFromTheShell(t *testing.T) {
	t.Parallel()
	quiet := compose(t)
	var stray []string
	for name := range ours(quiet) {
		for variable := range quiet.Services[name].Environment {
			stray = append(stray, variable+"=stray")
		}
	}
	stray = append(stray, "POSTGRES_PASSWORD=stray", "POSTGRES_USER=stray")
	noisy := compose(t, stray...)
	for name, service := range quiet.Services {
		require.Equal(t, service.Environment, noisy.Services[name].Environment, name)
	}
	chosen := compose(t, "TWINBOX_LOG_LEVEL=DEBUG", "TWINBOX_ADMIN_TOKEN=").Services["customer"]
	_, err := services.All()[0].Load(environ(chosen))
	require.NoError(t, err, "in any case, and no token is fine")
}

// What dies by itself, or with the engine, comes back by itself.
func TestCompose_EverythingIsStartedAgain(t *testing.T) {
	t.Parallel()
	for name, service := range compose(t).Services {
		if slices.Contains([]string{"migrate", "topics"}, strings.Join(service.Command, " ")) {
			require.Equal(t, "no", service.Restart, name)
			continue
		}
		require.Equal(t, "unless-stopped", service.Restart, name)
	}
}

// Each check is a process: an idle system should not spend its time on them. A start is still noticed within a second.
func TestCompose_HealthChecksAreCheap(t *testing.T) {
	t.Parallel()
	for name, service := range compose(t).Services {
		if !hasHealthcheck(service) {
			continue
		}
		check := service.HealthCheck
		require.GreaterOrEqual(t, time.Duration(*check.Interval), 30*time.Second, name)
		require.Equal(t, time.Second, time.Duration(*check.StartInterval), name)
		require.GreaterOrEqual(t, time.Duration(*check.StartPeriod), time.Minute, name)
		require.NotContains(t, strings.Join(check.Test, " "), "/opt/kafka/", "%s: a JVM for each question", name)
	}
}

// Two builds that export one tag give the second another image than the first, and a container is made anew for it.
func TestCompose_OneBuildPerImage(t *testing.T) {
	t.Parallel()
	project := compose(t)
	builds := map[string]string{}
	for name := range ours(project) {
		service := project.Services[name]
		if service.Build == nil {
			require.Equal(t, types.PullPolicyNever, service.PullPolicy, "%s: no registry has what is built here", name)
			continue
		}
		require.Empty(t, builds[service.Image], "%s builds %s again", name, service.Image)
		builds[service.Image] = name
		require.Contains(t, service.Image, service.Build.Target)
	}
	require.Len(t, builds, len(all()))
}

func TestCompose_ImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, service := range compose(t).Services {
		_, tag, tagged := strings.Cut(path.Base(service.Image), ":")
		require.True(t, tagged, "%s: %s", name, service.Image)
		require.NotContains(t, []string{"latest", "edge", "main"}, tag, name)
		require.NotContains(t, service.Image, "bitnami/", name)
	}
}

func TestCompose_Volumes(t *testing.T) {
	t.Parallel()
	project := compose(t)
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
	require.Equal(t, map[string]string{
		"postgres": "postgres:/var/lib/postgresql",
		"kafka":    "kafka:" + *project.Services["kafka"].Environment["KAFKA_LOG_DIRS"],
		"nats":     "nats:/data",
	}, mounts)
	require.Len(t, project.Volumes, len(mounts), "every volume declared is used")
	require.ElementsMatch(t, []string{"/etc/kafka/secrets", "/mnt/shared/config"}, project.Services["kafka"].Tmpfs,
		"volumes of the image that have no name here would be left behind by each down")
}

func TestCompose_ServicesAreConfined(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for name, s := range ours(project) {
		service := project.Services[name]
		require.True(t, service.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Contains(t, service.SecurityOpt, "no-new-privileges:true", name)
		if service.Restart == "no" {
			continue
		}
		instance, err := s.Load(environ(service))
		require.NoError(t, err)
		drain, err := time.ParseDuration(instance.Value("SHUTDOWN_TIMEOUT"))
		require.NoError(t, err)
		require.Greater(t, time.Duration(*service.StopGracePeriod), drain, "%s: the kill must not cut the drain", name)
	}
}
