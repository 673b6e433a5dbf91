// Package kubernetes tests examples/kubernetes: here against the published types and schemas, in
// cases on a cluster.
package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	strictjson "sigs.k8s.io/json"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the kinds of objects that the examples create: the Go type, which knows all fields, and
// for kinds that are not Kubernetes' own the CustomResourceDefinition in the operator's module, which
// knows the required fields and the permitted values.
var kinds = map[string]struct {
	object      any
	module, crd string
}{
	"v1 Service":   {&core.Service{}, "", ""},
	"batch/v1 Job": {&batch.Job{}, "", ""},
	"jobset.x-k8s.io/v1alpha2 JobSet": {&jobset.JobSet{}, "sigs.k8s.io/jobset",
		"config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	"leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": {&lws.LeaderWorkerSet{}, "sigs.k8s.io/lws",
		"config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"},
	"trainer.kubeflow.org/v1alpha1 TrainingRuntime": {&trainer.TrainingRuntime{},
		"github.com/kubeflow/trainer/v2",
		"manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml"},
	"trainer.kubeflow.org/v1alpha1 TrainJob": {&trainer.TrainJob{},
		"github.com/kubeflow/trainer/v2",
		"manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"},
	"kubeflow.org/v1 PyTorchJob": {&training.PyTorchJob{},
		"github.com/kubeflow/training-operator",
		"manifests/base/crds/kubeflow.org_pytorchjobs.yaml"},
	"kubeflow.org/v2beta1 MPIJob": {&mpi.MPIJob{}, "github.com/kubeflow/mpi-operator",
		"manifests/base/kubeflow.org_mpijobs.yaml"},
}

const examples = "../../examples/kubernetes"

func TestExamplesHaveTheirPublishedTypes(t *testing.T) {
	files, err := filepath.Glob(examples + "/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("examples: %q, %v", files, err)
	}
	for _, file := range files {
		for i, object := range objects(t, file) {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(file), i), func(t *testing.T) {
				if err := check(object); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Each of these mistakes is one that the API server would refuse or, worse, ignore.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ file, right, wrong, want string }{
		{"indexed-job.yaml", "subdomain: train", "subDomain: train", "unknown field"},
		{"indexed-job.yaml", "completions: 2", "completions: two", "cannot unmarshal"},
		{"jobset.yaml", "maxRestarts: 3", "maxRestart: 3", "unknown field"},
		{"jobset.yaml", "action: FailJobSet", "action: FailJob", "action"},
		{"jobset.yaml", `type: DisruptionTarget, status: "True"`, "type: DisruptionTarget",
			"status in body is required"},
		{"leaderworkerset.yaml", "RecreateGroupOnPodRestart", "Recreate", "restartPolicy"},
		{"trainjob.yaml", "numNodes: 2", "numNode: 2", "unknown field"},
		{"pytorchjob.yaml", "{name: rdzv, key: token}", "{name: rdzv}", "key in body is required"},
		{"mpijob.yaml", "slotsPerWorker: 2", "slotsPerWorker: two", "cannot unmarshal"},
	} {
		t.Run(c.file+" "+c.wrong, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(examples, c.file))
			if err != nil {
				t.Fatal(err)
			}
			var failed error
			changed := strings.ReplaceAll(string(text), c.right, c.wrong)
			for _, object := range strings.Split(changed, "\n---\n") {
				if err := check([]byte(object)); err != nil {
					failed = err
				}
			}
			if changed == string(text) || failed == nil || !strings.Contains(failed.Error(), c.want) {
				t.Errorf("got %v, want %q", failed, c.want)
			}
		})
	}
}

// The YAML of docs/reference/exit-codes.md is part of an example.
func TestDocsQuoteAnExample(t *testing.T) {
	page, example := unindented(t, "../../docs/reference/exit-codes.md"), unindented(t, examples+"/indexed-job.yaml")
	blocks := strings.Split(page, "\n```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Error("no YAML")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(example, block) {
			t.Errorf("not in the example:\n%s", block)
		}
	}
}

// The command of docs/start/kubernetes.md changes the name and the number of pods everywhere, and
// nothing else.
func TestCopyOfAnExample(t *testing.T) {
	var command string
	for line := range strings.Lines(unindented(t, "../../docs/start/kubernetes.md")) {
		if strings.HasPrefix(line, "sed ") {
			command = line
		}
	}
	file := filepath.Join(t.TempDir(), "eval.yaml")
	shell := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(command, "> eval.yaml", `> "$0"`, 1), file)
	shell.Dir = examples
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	var service core.Service
	var job batch.Job
	for i, object := range []any{&service, &job} {
		if err := yaml.UnmarshalStrict(objects(t, file)[i], object); err != nil {
			t.Fatal(err)
		}
	}
	pod := job.Spec.Template.Spec
	for _, name := range []string{service.Name, service.Spec.Selector["job-name"], job.Name, pod.Subdomain} {
		if name != "eval" {
			t.Errorf("a name is %q", name)
		}
	}
	main := pod.Containers[0]
	if *job.Spec.Completions != 4 || *job.Spec.Parallelism != 4 || main.Env[0].Value != "4" {
		t.Errorf("%d completions, %d at once, %v", *job.Spec.Completions, *job.Spec.Parallelism, main.Env[0])
	}
	if command := strings.Join(main.Command, " "); main.Image != "registry.example.com/train:1" ||
		!strings.HasSuffix(command, " python3 train.py") {
		t.Errorf("the program has changed: %s in %s", command, main.Image)
	}
}

// unindented returns the lines of a file without the spaces at their beginnings.
func unindented(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func objects(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(text, []byte("\n---\n"))
}

// check compares an object with the type of its kind and its CustomResourceDefinition.
func check(object []byte) error {
	var kind struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(object, &kind); err != nil {
		return err
	}
	known, found := kinds[kind.APIVersion+" "+kind.Kind]
	if !found {
		return fmt.Errorf("unknown kind %v", kind)
	}
	text, err := yaml.YAMLToJSONStrict(object)
	if err != nil {
		return err
	}
	// As the API server decodes: names of fields are case-sensitive.
	unknown, err := strictjson.UnmarshalStrict(text, known.object)
	if err := errors.Join(append(unknown, err)...); err != nil || known.crd == "" {
		return err
	}
	schema, err := schemaOf(known.module, known.crd, kind.APIVersion)
	if err != nil {
		return err
	}
	var data any
	if err := yaml.Unmarshal(object, &data); err != nil {
		return err
	}
	return validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(data).AsError()
}

// schemaOf returns the schema of a version in a CustomResourceDefinition.
func schemaOf(module, crd, apiVersion string) (*spec.Schema, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", module, err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), crd))
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema json.RawMessage }
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	for _, version := range definition.Spec.Versions {
		if strings.HasSuffix(apiVersion, "/"+version.Name) {
			schema := new(spec.Schema)
			return schema, json.Unmarshal(version.Schema.OpenAPIV3Schema, schema)
		}
	}
	return nil, fmt.Errorf("no version %s in %s", apiVersion, crd)
}
