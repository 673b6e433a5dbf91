// Package cases runs examples/kubernetes on the cluster of tools/kubernetes/cluster: make kubernetes.
package cases

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	examples = "../../../examples/kubernetes/"
	patience = 90 * time.Second // for an event that takes seconds on an idle machine
)

// A run is the Job of a case, under the case's name.
type run struct {
	t       *testing.T
	name    string
	service core.Service
	job     batch.Job
}

// newRun returns examples/kubernetes/indexed-job.yaml as a Job of this name, whose pods run a program,
// if one is given, by rdzv exec with more flags. No index starts again after a failure that counts.
func newRun(t *testing.T, name string, flags []string, program ...string) *run {
	t.Helper()
	r := &run{t: t, name: name}
	text, err := os.ReadFile(examples + "indexed-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	service, job, _ := strings.Cut(string(text), "\n---\n")
	decode(t, service, &r.service)
	decode(t, job, &r.job)
	r.service.Name, r.service.Spec.Selector["job-name"] = name, name
	r.job.Name, r.pod().Subdomain = name, name
	r.job.Spec.BackoffLimitPerIndex = new(int32)
	mountUsr(r.pod())
	spread(r.pod(), name)
	if c := r.container(); program != nil {
		c.Command = slices.Concat(c.Command[:2], flags, []string{"--"}, program)
	}
	t.Cleanup(r.finish)
	return r
}

func (r *run) pod() *core.PodSpec         { return &r.job.Spec.Template.Spec }
func (r *run) container() *core.Container { return &r.pod().Containers[0] }

// resize sets the number of pods.
func (r *run) resize(n int32) {
	r.job.Spec.Completions, r.job.Spec.Parallelism = &n, &n
	r.container().Env[0].Value = strconv.Itoa(int(n)) // RDZV_NODES
}

// mountUsr gives the main container this machine's /usr, which has python3 and torch.
func mountUsr(pod *core.PodSpec) {
	pod.Volumes = append(pod.Volumes, core.Volume{Name: "usr", VolumeSource: core.VolumeSource{
		HostPath: &core.HostPathVolumeSource{Path: "/usr"}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts,
		core.VolumeMount{Name: "usr", MountPath: "/usr", ReadOnly: true})
}

// spread divides the pods of a Job among the nodes, as a request for all GPUs of a node would.
func spread(pod *core.PodSpec, job string) {
	pod.TopologySpreadConstraints = []core.TopologySpreadConstraint{{MaxSkew: 1,
		TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: core.DoNotSchedule,
		LabelSelector: &meta.LabelSelector{MatchLabels: map[string]string{"job-name": job}}}}
}

// start creates the service and the Job.
func (r *run) start() {
	r.t.Helper()
	apply(r.t, r.service)
	apply(r.t, r.job)
}

// ends waits until the Job has this condition.
func (r *run) ends(condition string) {
	r.t.Helper()
	kubectl(r.t, "wait", "--for=condition="+condition, "--timeout="+patience.String(), "job/"+r.name)
}

// podOf waits for a pod of an index that is not one of old, and returns its name.
func (r *run) podOf(index int, old ...string) string {
	r.t.Helper()
	selector := fmt.Sprintf("job-name=%s,batch.kubernetes.io/job-completion-index=%d", r.name, index)
	return within(r.t, "a pod of "+selector, func() string {
		out := kubectl(r.t, "get", "pods", "-l", selector,
			"-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)
		for _, pod := range strings.Fields(out) {
			if !slices.Contains(old, pod) {
				return pod
			}
		}
		return ""
	})
}

// says waits until the program of a pod has printed a text.
func (r *run) says(pod, text string) {
	r.t.Helper()
	within(r.t, fmt.Sprintf("%q in the log of %s", text, pod), func() string {
		out, _ := try("logs", pod) // an error until the container has started
		if !strings.Contains(out, text) {
			return ""
		}
		return text
	})
}

// message returns the termination message of a pod as kubectl describe shows it, when it has ended.
func (r *run) message(pod string) string {
	r.t.Helper()
	kubectl(r.t, "wait", "--for=jsonpath={.status.containerStatuses[0].state.terminated}",
		"--timeout="+patience.String(), "pod/"+pod)
	return terminated(kubectl(r.t, "describe", "pod", pod))
}

// terminated is the part of a pod's description about the end of its main container.
func terminated(description string) string {
	_, main, _ := strings.Cut(description, "\nContainers:")
	_, state, _ := strings.Cut(main, "    State:")
	state, _, _ = strings.Cut(state, "    Ready:")
	return "    State:" + state
}

// letEnd lets the programs of pods that wait with `until [ -e /tmp/end ]` end.
func (r *run) letEnd(pods ...string) {
	r.t.Helper()
	for _, pod := range pods {
		kubectl(r.t, "exec", pod, "-c", r.container().Name, "--", "touch", "/tmp/end")
	}
}

// finish deletes the Job.
func (r *run) finish() {
	r.keep()
	kubectl(r.t, "delete", "--now", "--ignore-not-found", "job/"+r.name, "service/"+r.name)
}

// keep writes a file with what kubectl tells about the Job's pods. After a failure it prints it too.
func (r *run) keep() {
	said := record("-l", "job-name="+r.name)
	path := filepath.Join(*logs, r.name+".log")
	if err := os.WriteFile(path, []byte(said), 0o644); err != nil {
		r.t.Error(err)
	}
	if r.t.Failed() {
		r.t.Log(said)
	}
}

// record is what kubectl tells about some pods: their list, how they ended and what they printed.
func record(selector ...string) string {
	var b strings.Builder
	show := func(args ...string) string {
		out, err := try(slices.Concat(args, selector)...)
		fmt.Fprintf(&b, "$ kubectl %s\n", strings.Join(slices.Concat(args, selector), " "))
		if err != nil {
			out += err.Error() + "\n"
		}
		return out
	}
	b.WriteString(show("get", "pods", "-o", "wide"))
	for _, pod := range strings.Split(show("describe", "pods"), "\n\n\nName:") {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(pod), "Name:"), "\n")
		fmt.Fprintf(&b, "Name: %s\n%s", strings.TrimSpace(name), terminated(pod))
	}
	b.WriteString(show("logs", "--prefix", "--tail=-1", "--all-containers", "--ignore-errors"))
	return b.String()
}

func decode(t *testing.T, text string, object any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, object any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed(string(text), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl and returns what it prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(args ...string) (string, error) { return feed("", args...) }

func feed(stdin string, args ...string) (string, error) {
	return cluster(stdin, append([]string{"kubectl"}, args...)...)
}

// cluster runs the script that has started the cluster.
func cluster(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../cluster", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("cluster %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out), nil
}

// within calls f until it returns a text that is not empty.
func within(t *testing.T, what string, f func() string) string {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if got := f(); got != "" {
			return got
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("no %s after %v", what, patience)
	return ""
}
