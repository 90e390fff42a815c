// Package kubernetes_test decodes the manifests strictly and asks each program about its environment.
package kubernetes_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

type manifests struct {
	deployments map[string]*appsv1.Deployment
	jobs        map[string]*batchv1.Job
	configs     map[string]*corev1.ConfigMap
	budgets     map[string]*policyv1.PodDisruptionBudget
	policies    map[string]*networkingv1.NetworkPolicy
	services    map[string]*corev1.Service
}

func build(t *testing.T, folder string) manifests {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	m := manifests{
		map[string]*appsv1.Deployment{},
		map[string]*batchv1.Job{},
		map[string]*corev1.ConfigMap{},
		map[string]*policyv1.PodDisruptionBudget{},
		map[string]*networkingv1.NetworkPolicy{},
		map[string]*corev1.Service{},
	}
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		require.NoError(t, err)
		name, kind := resource.GetName(), resource.GetKind()
		var into any
		switch kind {
		case "Deployment":
			m.deployments[name] = &appsv1.Deployment{}
			into = m.deployments[name]
		case "Job":
			m.jobs[name] = &batchv1.Job{}
			into = m.jobs[name]
		case "ConfigMap":
			m.configs[name] = &corev1.ConfigMap{}
			into = m.configs[name]
		case "PodDisruptionBudget":
			m.budgets[name] = &policyv1.PodDisruptionBudget{}
			into = m.budgets[name]
		case "NetworkPolicy":
			m.policies[name] = &networkingv1.NetworkPolicy{}
			into = m.policies[name]
		case "Service":
			m.services[name] = &corev1.Service{}
			into = m.services[name]
		case "ServiceMonitor": // a type of the Prometheus Operator
			into = &map[string]any{}
		default:
			require.Fail(t, "a kind that the test does not know", kind)
		}
		require.NoError(t, yaml.UnmarshalStrict(text, into), "%s %s", kind, name)
	}
	return m
}

func TestTheEnvironmentOfEachPodLoads(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"base", "production"} {
		m := build(t, folder)
		require.NotEmpty(t, m.deployments)
		for name, d := range m.deployments {
			program := buildProgram(t, name)
			requireLoads(t, m, program, d.Spec.Template.Spec)
			requireLoads(t, m, program, m.jobs["setup-"+name].Spec.Template.Spec)
		}
	}
}

func buildProgram(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/"+name)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// The values are as the production page describes them.
var secrets = map[string]string{
	"database-url":        "postgres://twinbox:secret@postgres:5432/twinbox?sslmode=verify-full",
	"verification-secret": strings.Repeat("v", 32), "admin-token": strings.Repeat("t", 32),
}

func requireLoads(t *testing.T, m manifests, program string, pod corev1.PodSpec) {
	t.Helper()
	container, folder := pod.Containers[0], t.TempDir()
	for file, value := range secrets {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(value), 0o600))
	}
	var environ []string
	for _, from := range container.EnvFrom {
		require.Contains(t, m.configs, from.ConfigMapRef.Name)
		for name, value := range m.configs[from.ConfigMapRef.Name].Data {
			environ = append(environ, name+"="+value)
		}
	}
	for _, variable := range container.Env {
		value := variable.Value
		if strings.HasSuffix(variable.Name, "_FILE") {
			value = filepath.Join(folder, filepath.Base(value))
		}
		environ = append(environ, variable.Name+"="+value)
	}
	cmd := exec.CommandContext(t.Context(), program, "config")
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &out
	require.NoError(t, cmd.Run(), "%s: %s", container.Name, out.String())
	require.NotContains(t, out.String(), "secret@")
}

func TestEachPod(t *testing.T) {
	t.Parallel()
	m := build(t, "production")
	for name, d := range m.deployments {
		require.GreaterOrEqual(t, *d.Spec.Replicas, int32(2), name)
		require.Contains(t, m.budgets, name)
		require.Equal(t, policyv1.AlwaysAllow, *m.budgets[name].Spec.UnhealthyPodEvictionPolicy, name)
		require.Contains(t, m.services, name+"-admin")
		require.True(t, m.services[name+"-admin"].Spec.PublishNotReadyAddresses, name)
		pod := d.Spec.Template.Spec
		drain := int64(25) // SHUTDOWN_TIMEOUT
		if hook := pod.Containers[0].Lifecycle; m.services[name] != nil {
			require.NotNil(t, hook, "%s: its listener closes while the ingress sends requests", name)
			drain += hook.PreStop.Sleep.Seconds
		}
		require.Greater(t, *pod.TerminationGracePeriodSeconds, drain, name)
		require.NotEmpty(t, pod.TopologySpreadConstraints, name)
		for _, probe := range []*corev1.Probe{
			pod.Containers[0].StartupProbe, pod.Containers[0].LivenessProbe, pod.Containers[0].ReadinessProbe,
		} {
			require.Equal(t, "admin", probe.HTTPGet.Port.StrVal, name)
		}
		for _, p := range []corev1.PodSpec{pod, m.jobs["setup-"+name].Spec.Template.Spec} {
			require.True(t, *p.SecurityContext.RunAsNonRoot, name)
			c := p.Containers[0]
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
			require.NotEmpty(t, c.Resources.Limits.Memory().String(), name)
			require.Contains(t, c.Image, ":0.2.0", "%s: a pinned image", name)
		}
		for _, volume := range pod.Volumes {
			require.NotEqual(t, name+"-owner", volume.Secret.SecretName, "the owner's password is the job's")
		}
	}
	require.Len(t, m.policies, 2)
	for name, config := range m.configs {
		for host := range strings.SplitSeq(config.Data["ADMIN_HOSTS"], ",") {
			require.Contains(t, m.services, host, name)
		}
	}
}
